"""The report: six parts from the results, written as HTML and as Markdown."""
