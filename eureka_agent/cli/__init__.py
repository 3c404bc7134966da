"""The `eureka` command. Each command is a module of its own, imported when it is called, so that
help is quick."""
