# environment: cart
# broken: an explanation in place of a program
To balance the pole, the reward should be large while the angle of the pole is small, and the cart
should stay near the middle of the rail. A good choice is the cosine of the angle, less a twentieth
of the distance. I would suggest to start with that and to look at the learning curve.
