# environment: cabinet
# broken: a whole reply, with its explanations, in place of a program
Here is an improved reward function. The distance term is normalised, and a bonus is given
for an open drawer:

```python
import torch

def compute_reward(franka_grasp_pos, drawer_grasp_pos, cabinet_dof_pos):
    distance = torch.norm(franka_grasp_pos - drawer_grasp_pos, dim=-1)
    reach = torch.exp(-5.0 * distance)
    bonus = (cabinet_dof_pos[:, 3] > 0.39).float()
    return reach + bonus, {"reach": reach, "bonus": bonus}
```

Let me know whether the bonus should be larger!
