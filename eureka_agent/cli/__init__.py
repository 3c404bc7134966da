"""The `eureka` command. Each command is a module that is imported on use, so that help is quick."""
