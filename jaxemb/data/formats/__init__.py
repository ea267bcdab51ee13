"""Files of word vectors, one module a family; `jaxemb.data.vectors` uses them."""
