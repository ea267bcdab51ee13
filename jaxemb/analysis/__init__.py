"""What a checkpoint or a space shows: neighbours, norms, figures, the HTML report."""
