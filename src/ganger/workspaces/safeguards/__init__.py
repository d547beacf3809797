"""The rules that judge every change, put together."""
