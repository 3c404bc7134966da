"""Any task of mjlab that `options: {task: …}` in command.yaml names, trained by rsl_rl.

pip install torch mjlab, then the folder `adapters` of eureka-agent's repository."""

from eureka_adapter.mjlab import main

if __name__ == "__main__":
    main()
