"""Any task of mjlab, trained by rsl_rl: `options: {task: …}` in command.yaml names it. The Python
environment of `interpreter` there needs

    pip install mjlab ./adapters

where `adapters` is the folder of eureka-agent's repository."""

from eureka_adapter.mjlab import main

if __name__ == "__main__":
    main()
