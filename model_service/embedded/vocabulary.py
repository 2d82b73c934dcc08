"""The closed vocabularies that the synthetic documents draw their values from."""

from __future__ import annotations

from typing import Final

FIRST_NAMES: Final = tuple(
    "Ada Alan Alma Amir Anna Boris Carla Cedric Clara Dana David Diego Elena Emil Erik Eva Felix Fiona Frank Gina "
    "Hana Hugo Ida Igor Iris Ivan Jana Jonas Julia Karl Kenji Lara Leon Lina Lucas Mara Marco Maria Milan Mina "
    "Nadia Nina Noah Nora Olga Omar Oscar Paula Pedro Petra Rosa Ruben Sara Selma Simon Sofia Theo Tina Victor Yara".split()
)
LAST_NAMES: Final = tuple(
    "Adler Baker Bauer Becker Berg Blanc Brandt Carter Castro Cohen Costa Cruz Dahl Diaz Dubois Evans Fischer Fox "
    "Garcia Gomez Grant Hansen Hayes Hill Holm Ito Jensen Keller Klein Kovac Lang Larsen Lopez Marsh Meyer Moreau "
    "Mori Nagy Novak Okada Olsen Park Patel Perez Quinn Reyes Rossi Russo Santos Sato Silva Stone Tanaka Vega "
    "Vogel Wagner Walsh Weber Wolf Young".split()
)
CITIES: Final = tuple(
    "Athens Austin Bergen Berlin Bern Boston Bremen Cairo Chicago Cork Dallas Delhi Denver Dublin Geneva Ghent Graz "
    "Hamburg Helsinki Kyoto Leeds Leipzig Lima Lisbon London Lyon Madrid Milan Montreal Munich Nairobi Naples Nice "
    "Osaka Oslo Paris Porto Prague Riga Rome Seoul Seville Sofia Sydney Tallinn Tokyo Toronto Turin Utrecht Vienna "
    "Vilnius Warsaw Zagreb Zurich".split()
)
COUNTRIES: Final = tuple(
    "Austria Belgium Brazil Canada Chile Denmark Egypt Estonia Finland France Germany Greece India Ireland Italy "
    "Japan Kenya Latvia Mexico Norway Peru Poland Portugal Spain Sweden".split()
)
JOBS: Final = (
    *"architect baker barber carpenter chef dentist designer doctor driver editor electrician engineer farmer "
    "gardener journalist judge lawyer librarian mechanic musician nurse painter pharmacist photographer pilot "
    "plumber professor sculptor tailor teacher translator welder".split(),
    "data analyst",
    "police officer",
    "software developer",
    "sales manager",
)
LANGUAGES: Final = tuple("Arabic Czech Dutch English French German Greek Hindi Italian Japanese Korean Polish Spanish Turkish".split())
COMPANIES: Final = tuple(
    "Acme Apex Borealis Cobalt Delta Evergreen Fabrik Globex Helios Initech Kestrel Lumen Meridian Nimbus Orbit Pinnacle".split()
)
ITEMS: Final = (
    *"backpack bicycle blanket bookshelf camera candle chair clock desk drill fan guitar hammer headphones helmet "
    "jacket kettle keyboard ladder lamp laptop mattress microphone mirror monitor mug notebook pillow printer radio "
    "rug scarf shelf sofa speaker stapler suitcase table tablet teapot telescope tent toaster umbrella vase wallet "
    "watch".split(),
    "coffee maker",
    "desk lamp",
    "phone case",
    "water bottle",
)
COLORS: Final = tuple("black blue brown green grey orange pink purple red silver white yellow".split())
STREETS: Final = tuple(
    "Birch Bridge Castle Cedar Chapel Church Elm Forest Garden Harbor High Hill Kings Lake Lime Maple Market Mill "
    "Oak Orchard Park Pine Queen River School Spring Station Sunset Valley Willow".split()
)
STREET_KINDS: Final = ("Street", "Road", "Lane", "Avenue")
EVENT_NAMES: Final = tuple("Autumn Coastal Digital Future Global Green Modern Northern Open Spring Summer Urban Winter".split())
EVENT_KINDS: Final = tuple("Conference Exhibition Fair Festival Forum Gala Summit Symposium Workshop".split())
TOPICS: Final = tuple(
    "astronomy biology chemistry cinema climate cooking design economics fashion finance history law logistics "
    "mathematics medicine music painting physics poetry robotics security sports theatre travel".split()
)
MONTHS: Final = tuple("January February March April May June July August September October November December".split())
PRIORITIES: Final = ("low", "normal", "high", "urgent")
STATUSES: Final = ("open", "waiting", "resolved", "closed")
PROBLEMS: Final = (
    "does not start",
    "arrived damaged",
    "makes a loud noise",
    "keeps overheating",
    "is missing a part",
    "loses its settings",
    "has a broken button",
    "shows a blank screen",
)
FORM_FIELDS: Final = tuple(
    "nickname height weight birthday salary manager discount coupon warranty invoice venue speaker sponsor floor "
    "region district agent severity reporter material width model series category remark summary comment label "
    "first_name last_name full_name phone company department role team project budget deadline amount currency "
    "country language subject author publisher year genre duration distance speed temperature color size shape "
    "code reference account balance vendor address town state gender hobby school degree animal plant food drink "
    "engine license route driver seat gate airline hotel room rating score level version topic owner location".split()
)
SYLLABLES: Final = tuple(
    "ba be bo da de du fa fi go ka ke ko la le li lo ma me mi mo na ne no pa pe ra re ri ro sa se ta te ti to va ve vi za zo".split()
)
