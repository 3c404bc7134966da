"""Words that the offline designer knows, in one table, and their stems."""

from __future__ import annotations

import functools
import re

_ROWS = """
move: run walk move go travel hop gallop crawl swim sail drive fly sprint race advance fast \
 faster fastest speed quickly quick quicker velocity jog trot cruise dash row steer locomotion \
 locomote step stride ride distance far farther glide scoot
spin: spin rotate rotation turn twirl pirouette yaw flip somersault backflip roll whirl revolve
reach: reach touch goal target waypoint dock arrive hit approach follow catch grasp grab park \
 navigate hover setpoint
swing up: swing swingup
stay upright: balance upright stand vertical stabilize stabilise topple tilt lean level
raise: jump leap high higher highest height lift raise rise climb altitude ascend tall taller \
 crouch descend duck sink squat
change a position: open pull extend unfold push press insert slide close shut retract fold \
 increase maximize maximise decrease minimize minimise reduce fill empty stretch bend compress \
 charge
be still: still hover stop stationary motionless freeze brake steady settle rest halt calm
stay at the centre: centre middle origin
survive: alive survive fall crash collide collision long longer healthy
save effort: energy effort power efficient efficiently economical economically torque fuel lazy
act smoothly: smooth smoother smoothly smoothness jerk jerky jitter gentle gentler gently shake
lower: crouch descend duck sink squat close shut retract fold decrease minimize minimise reduce \
 empty compress
forward: forward forwards ahead front east x
backward: backward backwards back reverse rearward rear west backflip
leftward: left leftward leftwards sideways sideway laterally north y
rightward: right rightward rightwards south
upward: up upward upwards vertically z
downward: down downward downwards
flip: flip somersault backflip
whole turn: flip somersault backflip spin rotate twirl
carried: push pull slide
held up: up upright top balance invert swingup
goal: goal target desired waypoint setpoint command commanded reference destination buoy
error: error offset distance displacement difference gap deviation residual relative delta
body: torso base root body trunk pelvis hull chassis com mass robot drone vehicle quadcopter \
 quadrotor boat car cart ship craft agent head
part: foot leg hand wheel joint rotor propeller motor finger toe arm knee ankle hip thigh shin \
 elbow wrist shoulder left right
turning part: rotor propeller wheel motor
x: x forward surge ahead longitudinal east along front roll
y: y left lateral sway sideways right transverse north pitch
z: z up upward vertical heave height down yaw
leaning: upright pitch roll tilt lean inclination vertical pole pendulum torso body base trunk
steering: yaw heading rudder steering
attitude: quaternion quat orientation attitude
up vector: up upright gravity
cosine: cosine cos up upright uprightness
contact: contact touch collision ground
velocity: velocity speed vel
rate: velocity rate speed
height: height altitude elevation z
angle: angle pitch roll yaw heading
position: position pos
grammar: a about after again all along an and any around as at be by can do each for from get had \
 has have if in into is it its keep let like make may me more most must near of off on one onto or \
 order other out over per possible robot see should so some than that the their them then there \
 this to toward towards under until using very want we when where which while will with without \
 would you your
turns: aint arent cannot cant doesnt donot few fewer hardly isnt less low minimal minimum mustnt \
 neither none nor nothing shouldnt small too wont
negators: avoid no not without never dont prevent
stop doing: avoid conserve curb cut dampen drop economise economize lessen limit penalise \
 penalize penalty prevent punish restrict save suppress weaken
decrease: decrease minimise minimize reduce
stop: brake end freeze halt stop
slow: slow slower slowly
state: am are been did does had has is was were
harmless: whole hold change i my us our he she they what here now today id please pls plz kindly \
 thank thx yes hi hello how also both even ever pretty somewhat slightly bit lot much many always \
 often such during before between across through past beside within something entire full fully \
 asap every soon great good better best nice big bigger large larger wide hard harder strong \
 stronger natural elegant graceful brisk constant steadier straight stable calmer real max maximal \
 maximum own next first second two three four five six seven eight nine ten double triple twice \
 least little could might shall need wish love stay try attempt learn teach train help ensure sure \
 start begin continue maintain remain bring give put set take find look use show perform achieve \
 attain become carry behave allow enable focus aim pay reward notice lie hang land pick fetch hunt \
 sweep lock unlock add work play match face ready way manner style fashion gait pace motion \
 movement action policy controller machine creature animal dog cat spider insect human person man \
 line circle lap floor surface air place point spot side edge world room area track time moment \
 minute episode weight emphasis priority term score task direction rad degree control hole box \
 stick rod table wall door thing everyone rapidly swiftly steadily carefully naturally properly \
 correctly simply just gracefully elegantly nicely continuously constantly repeatedly consistently \
 reliably rhythmically precisely accurately exactly directly completely entirely totally \
 absolutely really extremely incredibly safely firmly stably evenly especially particularly mainly \
 mostly ideally significantly considerably noticeably substantially greatly clearly definitely \
 certainly actually immediately perfectly closely closer nearer confidently briskly freely calmly \
 below away lower slip slippery drift bounce dance tidy clean wipe collect build draw stack sort \
 clockwise anticlockwise counterclockwise counter bottom hopper ant humanoid quadruped biped \
 cheetah horse monoped walker alone load flat s explore view comfortable forever possibly further \
 axis axes prefer relaxed softly ok okay able capable cover win earn gain pump think believe \
 suppose require ask consist produce generate develop exhibit demonstrate execute repeat create \
 design guide operate record champion athlete runner sprinter jumper gazelle kangaroo frog rabbit \
 deer leopard force momentum consumption usage amount quantity posture stance positive coordinate \
 sooner earlier early straighter straightforward objective purpose mission mode form shape path \
 trajectory route course lane road field grass terrain corner session trial quality energetically \
 happily vigorously dynamically powerful dynamic agile nimble athletic lively vigorous rapid swift \
 speedy secure robust reliable consistent perfect proper correct precise accurate exact neat \
 beautiful lovely fluid fluently smoothest continuous wooden realistic lifelike sensible useful \
 reasonable decent solid firm sturdy single total overall general normal usual main everywhere \
 somewhere thereby meanwhile afterwards finally eventually moreover additionally therefore because \
 well simple simulated simulation actuator grip boost crank emphasise emphasize prioritise \
 prioritize improve improvement strengthen enhance encourage intensify amplify promote highlight \
 optimise optimize optimal accelerate acceleration hurry rush hasten straighten widen lengthen \
 upgrade incentivise incentivize value heighten elevate grow expand support seek pursue manage \
 succeed him his people guy kid someone everybody team hey cmon oh wow yeah alright awesome \
 excellent amazing super fantastic wonderful expect im ive gonna wanna gotta example fun game \
 challenge exercise trick stunt video day hour pair couple group result outcome idea plan strategy \
 simulator sim gym environment env benchmark mujoco limb chest neck efficiency stability strength \
 muscle rhythm rhythmic tempo cadence footstep strongly extra ultra maximally optimally fresh \
 eager bold brave huge giant massive enormous gigantic deep round tight quiet silent quietly \
 silently devote dedicate concentrate solve accomplish complete proceed progress zoom bolt scamper \
 scurry scuttle stroll march strut vault spring launch soar float wander roam patrol bound \
 transport deliver transfer shift twist wiggle wave kneel sit appear figure number onward upfront \
 eastward metre meter kilometre mile robotic onelegged bipedal mobile virtual physical living self \
 itself himself myself ourselves together thoroughly cleanly neatly sharply tirelessly \
 relentlessly tenaciously currently presently usually normally generally typically automatically \
 literally basically honestly kinda sorta kind type given matter
"""
_IRREGULAR = {
    "going": "go",
    "goes": "go",
    "ran": "run",
    "stood": "stand",
    "held": "hold",
    "kept": "keep",
    "feet": "foot",
}
_IRREGULAR |= dict.fromkeys(("center", "centered", "centred"), "centre")


def stem(word: str) -> str:
    """A crude stem for comparisons, the same for a verb's forms and a noun's numbers."""
    word = _IRREGULAR.get(word, word)
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("es") and len(word) > 4:
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    for suffix in ("ing", "ed"):
        rest = word.removesuffix(suffix)
        if 2 < len(rest) < len(word) and re.search("[aeiouy]", rest) and not word.endswith("eed"):
            word = rest
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def tokens(text: str) -> list[str]:
    """Lower-case words of a text in order, an identifier's parts too; no numbers, no marks."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


@functools.lru_cache(maxsize=2048)  # an environment's docs are read for every draft
def stems(text: str) -> frozenset[str]:
    """Stems of the words that say something."""
    return frozenset(stem(word) for word in tokens(text) if word not in STOP_WORDS)


LISTS = {
    name: frozenset(words.split())
    for name, words in (row.split(": ") for row in _ROWS.strip().splitlines())
}
"""The table: words of a kind as they are written."""
STOP_WORDS = LISTS["grammar"]
"""Words that say nothing of which variable is meant."""
WORDS = {name: frozenset(map(stem, words)) for name, words in LISTS.items()}
"""Stems that name a goal, a direction, or a kind of variable."""
KNOWN = frozenset().union(*WORDS.values())
"""Stems of all words of the table."""
HEADINGS = (("forward", "backward"), ("leftward", "rightward"), ("upward", "downward"))
"""Names of x, y and z, each forth and back."""
