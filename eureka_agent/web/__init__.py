"""The page of `eureka ui`: runs of this machine in a browser, over HTTP."""
