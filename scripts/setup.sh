# Sourced by demo, test and bench: `ensure_environment FOLDER EXTRA…` makes an environment
# once for each state of pyproject.toml and set of extras, and leaves it alone after that.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "jaxemb needs Python 3.11 or newer; set PYTHON to one" >&2
  exit 2
}

ensure_environment() {
  local environment extras stamp wanted python
  environment=$1
  shift
  extras=$(IFS=,; echo "$*")
  stamp=$environment/jaxemb-installed
  wanted="$(cksum < pyproject.toml)"
  if [ -f "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$wanted" ]; then
    local have extra missing=
    have=$(tail -n 1 "$stamp")
    for extra in "$@"; do case ",$have," in *",$extra,"*) ;; *) missing=1 ;; esac; done
    [ -n "$missing" ] || return 0
    extras=${have:+$have,}$extras
  fi
  python=$(find_python)
  echo "setting up $environment with $("$python" --version) (once; a few minutes on a slow line)" >&2
  [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    --editable ".${extras:+[$extras]}" || {
    echo "the installation failed; it needs a network to a package index" >&2
    return 1
  }
  printf '%s\n%s\n' "$wanted" "$extras" > "$stamp"
}
