"""The rules at run time: the layer's table of rules, and the command `fletching validate`."""
