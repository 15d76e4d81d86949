"""The built-in examples as editable configuration files."""
