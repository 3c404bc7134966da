"""Pictures of MuJoCo environments, drawn without a display."""

from __future__ import annotations

import ctypes
import importlib
import os
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from eureka_agent.invocation import DRAWING_HINT
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.pictures import Picture, RenderingError, Size

_BACK_ENDS = {"egl": ("libEGL.so.1", "libEGL.so"), "osmesa": ("libOSMesa.so.8", "libOSMesa.so")}
"""Libraries of the back ends that need no display, the faster to start first."""
BACK_END_VARIABLE = "MUJOCO_GL"
_QUARTER_TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
_TRACKED_DISTANCE = 2.0
"""Distance of the camera of a model without one, in the model's extents."""


class MujocoPictures:
    """Draws rows of an environment, without shadows and smooth edges, the slowest parts."""

    def __init__(self, environment: MujocoTask, size: Size) -> None:
        """Raises RenderingError without a library to draw with."""
        self._environment = environment
        model = self._model = environment.model
        model.vis.quality.offsamples = 0
        model.vis.global_.offwidth, model.vis.global_.offheight = size
        self._data = mujoco.MjData(model)
        self._camera = _camera(environment)
        self._gl = _open_context(size)
        self._scene = mujoco.MjvScene(model, maxgeom=max(2000, 4 * model.ngeom))
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._option = mujoco.MjvOption()
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        self._rectangle = mujoco.MjrRect(0, 0, *size)
        self._pixels = np.empty((size[1], size[0], 3), dtype=np.uint8)

    def picture(self, row: int) -> Picture:
        self._update(row)
        return self._drawn()

    def turned(self, row: int) -> Picture:
        """The row from a side a quarter turn about the vertical away."""
        self._update(row)
        views = self._scene.camera
        first, forward = np.array(views[0].pos), np.array(views[0].forward)
        pivot = first + forward * max(0.0, float((self._centre() - first) @ forward))
        for view in views:
            view.pos = pivot + _QUARTER_TURN @ (view.pos - pivot)
            view.forward, view.up = _QUARTER_TURN @ view.forward, _QUARTER_TURN @ view.up
        for light in self._scene.lights[: self._scene.nlight]:
            if light.headlight:  # it shines from the camera
                light.pos, light.dir = views[0].pos, views[0].forward
        return self._drawn()

    def _centre(self) -> NDArray[np.float64]:
        """Point that the camera looks at, or moves with. Shape: (3,), m, world frame."""
        model, camera = self._model, self._camera
        if camera.type == mujoco.mjtCamera.mjCAMERA_FREE:
            return camera.lookat
        followed = camera.trackbodyid
        if camera.type == mujoco.mjtCamera.mjCAMERA_FIXED:
            if int(model.cam_mode[camera.fixedcamid]) == int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED):
                return model.stat.center
            followed = model.cam_bodyid[camera.fixedcamid]
        return self._data.subtree_com[followed]

    def _update(self, row: int) -> None:
        model, data = self._model, self._data
        for name, values in self._environment.physics.state().items():
            if name in ("qpos", "qvel", "mocap_pos", "mocap_quat"):
                target = getattr(data, name)
                target[:] = values[row].cpu().numpy().reshape(target.shape)
        mujoco.mj_fwdKinematics(model, data)  # flexes, tendons, cameras and lights as well
        every = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, data, self._option, None, self._camera, every, self._scene)

    def _drawn(self) -> Picture:
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        mujoco.mjr_readPixels(self._pixels, None, self._rectangle, self._context)
        return self._pixels[::-1].copy()

    def close(self) -> None:
        self._context.free()
        self._gl.free()


def back_end() -> str:
    """The back end that MUJOCO_GL names, else one that is here. Raises RenderingError."""
    asked = os.environ.get(BACK_END_VARIABLE, "").strip().lower()
    if asked in _BACK_ENDS:
        return asked
    for name, libraries in _BACK_ENDS.items():
        if any(_loads(library) for library in libraries):
            return name
    raise RenderingError("nothing can draw MuJoCo's scenes here: no EGL, no OSMesa", DRAWING_HINT)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _open_context(size: Size) -> Any:
    """A current context for drawing off screen. Raises RenderingError."""
    name = back_end()
    # one thread: a search's workers share the cores
    os.environ.setdefault("LP_NUM_THREADS", "0")
    os.environ.setdefault("MESA_SHADER_CACHE_DISABLE", "true")
    try:
        # MuJoCo chooses on its own import, from a variable that most workers do not have
        found = importlib.import_module(f"mujoco.{name}").GLContext(*size)
        found.make_current()
    except Exception as error:  # noqa: BLE001  (the libraries raise anything)
        what = f"{name} cannot draw here: {' '.join(str(error).split())[:200]}"
        other = next(each for each in _BACK_ENDS if each != name)
        hint = f"{DRAWING_HINT}; {BACK_END_VARIABLE}={other} takes the other one"
        raise RenderingError(what, hint) from None
    return found


def _camera(environment: MujocoTask) -> mujoco.MjvCamera:
    """The camera that the class names, the model's first, or one that follows the robot. Raises
    RenderingError for a name that the model does not have."""
    model, camera = environment.model, mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    if environment.camera or model.ncam:
        number = 0
        if environment.camera:
            kind = mujoco.mjtObj.mjOBJ_CAMERA.value
            number = mujoco.mj_name2id(model, kind, environment.camera)
        if number < 0:
            names = ", ".join(repr(model.camera(each).name) for each in range(model.ncam))
            raise RenderingError(
                f"{type(environment).__name__}.camera is {environment.camera!r}, expected a camera"
                f" of the MJCF: {names or 'it has none'}",
                "name one of them, or leave it out",
            )
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, number
    elif model.njnt and int(model.jnt_type[0]) in (
        int(mujoco.mjtJoint.mjJNT_FREE),
        int(mujoco.mjtJoint.mjJNT_SLIDE),
    ):
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        camera.trackbodyid = int(model.jnt_bodyid[0])
        camera.distance = _TRACKED_DISTANCE * float(model.stat.extent)
        camera.elevation = -15.0
    return camera
