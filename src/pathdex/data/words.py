"""The words that the planted catalogue is made of: interests, their sub-themes in the order of drift, and products."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """A shelf of products. Its shared items also stand on the shelf `also`, an interest and a sub-theme."""

    also: tuple[str, str]
    products: tuple[str, ...]


@dataclass(frozen=True)
class Interest:
    """A field of products. Users drift from each sub-theme to the next."""

    qualities: tuple[str, ...]
    themes: dict[str, Theme]


def _interest(qualities: str, **themes: str) -> Interest:
    return Interest(tuple(qualities.split()), {name.replace("_", "-"): _theme(text) for name, text in themes.items()})


def _theme(text: str) -> Theme:
    also, products = text.split(": ")
    interest, theme = also.split(".")
    return Theme((interest, theme), tuple(products.split(", ")))


INTERESTS: dict[str, Interest] = {
    "food": _interest(
        "dark organic salted smoked roasted sweet spicy handmade",
        sweets="gifts.hampers: chocolate, caramel, marzipan, fudge, nougat, liquorice",
        snacks="games.parties: almonds, crackers, popcorn, pretzels, cashews, rice cakes",
        pantry="cooking.pans: olive oil, sea salt, honey, mustard, vinegar, tomato paste",
        drinks="gifts.hampers: espresso, green tea, cider, lemonade, cocoa, ginger beer",
        cheese="cooking.serving: cheddar, brie, gouda, feta, camembert, goat cheese",
    ),
    "gifts": _interest(
        "festive personal elegant handmade golden little lovely classic",
        cards="books.poetry: birthday card, wedding card, postcard set, thank-you card, advent calendar, guest book",
        wrapping="toys.crafts: gift box, ribbon, wrapping paper, gift bag, tissue paper, name tag",
        candles="home.decor: scented candle, tea lights, candle holder, lantern, incense, oil burner",
        keepsakes="home.decor: photo frame, music box, snow globe, key ring, trinket box, figurine",
        hampers="food.drinks: gift basket, picnic hamper, tasting set, tea box, praline box, wine crate",
    ),
    "garden": _interest(
        "climbing hardy potted dwarf wild evergreen scented heirloom",
        seeds="food.pantry: tomato seeds, poppy seeds, bean seeds, basil seeds, carrot seeds, sunflower seeds",
        tools="home.storage: spade, rake, pruning shears, hoe, trowel, garden fork",
        plants="home.decor: rose, lavender, hydrangea, fern, clematis, peony",
        watering="home.cleaning: hose, watering can, sprinkler, rain barrel, drip line, spray nozzle",
        outdoors="pets.birds: bird feeder, garden bench, compost bin, trellis, parasol, plant stand",
    ),
    "hiking": _interest(
        "light waterproof alpine sturdy padded compact insulated windproof",
        boots="sports.running: hiking boots, gaiters, wool socks, insoles, trail shoes, crampons",
        packs="travel.luggage: rucksack, day pack, rain cover, dry bag, hip pack, map case",
        camping="travel.comfort: tent, sleeping bag, camp stove, ground mat, hammock, head torch",
        wayfinding="books.science: compass, trail map, altimeter, whistle, route guide, field notebook",
        water="cycling.wear: water bottle, water filter, hydration pack, thermos, camp mug, purifier tablets",
    ),
    "travel": _interest(
        "foldable light lockable quilted compact striped leather rolling",
        luggage="fashion.accessories: suitcase, duffel bag, garment bag, luggage strap, packing cubes, cabin bag",
        comfort="home.bedding: neck pillow, eye mask, ear plugs, travel blanket, foot rest, slippers",
        papers="books.history: passport cover, travel wallet, luggage tag, ticket holder, phrase book, city guide",
        adapters="computing.cables: travel adapter, power bank, cable organiser, travel iron, hair dryer, kettle",
        beach="sports.swimming: beach towel, snorkel, sun hat, beach bag, flip-flops, sun tent",
    ),
    "cooking": _interest(
        "cast-iron steel copper enamel non-stick wooden ceramic heavy",
        pans="home.storage: frying pan, saucepan, wok, griddle, stockpot, casserole",
        knives="food.cheese: chef knife, paring knife, bread knife, cleaver, sharpener, cutting board",
        baking="food.sweets: cake tin, rolling pin, whisk, muffin tray, pastry brush, baking sheet",
        gadgets="home.storage: garlic press, peeler, grater, mandoline, kitchen scale, timer",
        serving="gifts.hampers: salad bowl, serving tray, carafe, gravy boat, cheese board, ladle",
    ),
    "home": _interest(
        "linen velvet oak woven grey rustic modern round",
        bedding="baby.sleeping: duvet cover, pillow, bed sheet, mattress topper, bedspread, blanket",
        lighting="photography.light: floor lamp, desk lamp, pendant light, bulb, fairy lights, wall light",
        storage="toys.pretend: shelf, storage basket, coat rack, drawer unit, shoe cabinet, laundry box",
        decor="gifts.keepsakes: vase, mirror, cushion, wall clock, rug, curtain",
        cleaning="pets.rodents: broom, mop, dustpan, bucket, duster, ironing board",
    ),
    "books": _interest(
        "illustrated annotated pocket collected abridged signed bestselling translated",
        crime="games.puzzles: detective novel, spy thriller, court drama, heist story, cold case, village mystery",
        fantasy="games.dice: dragon saga, fairy tales, quest trilogy, wizard novel, myth anthology, sea epic",
        history="travel.papers: war chronicle, city history, royal biography, memoir, atlas of empires, voyage diary",
        science="computing.parts: physics primer, star atlas, evolution essay, maths book, brain guide, ice report",
        poetry="gifts.cards: sonnets, haiku collection, love poems, ballads, verse novel, nature poems",
    ),
    "music": _interest(
        "acoustic electric vintage portable wireless walnut tuned concert",
        guitars="gifts.keepsakes: guitar, ukulele, guitar strings, capo, plectrum set, guitar stand",
        keys="books.poetry: digital piano, melodica, piano bench, keyboard stand, sustain pedal, sheet music",
        drums="toys.crafts: snare drum, cymbal, drum sticks, cajon, bongo, tambourine",
        listening="computing.input: headphones, record player, vinyl cleaner, speaker, earbuds, turntable mat",
        recording="computing.cables: microphone, audio interface, pop filter, mixer, boom arm, patch cable",
    ),
    "photography": _interest(
        "wide-angle tilting carbon magnetic instant matte weatherproof compact",
        cameras="travel.papers: camera, film roll, camera strap, lens cap, memory card, battery grip",
        lenses="hiking.wayfinding: prime lens, zoom lens, macro lens, lens filter, lens hood, adapter ring",
        support="music.recording: tripod, monopod, gimbal, ball head, clamp, shoulder rig",
        light="computing.screens: flash, softbox, reflector, light stand, ring light, backdrop",
        prints="gifts.keepsakes: photo paper, photo album, passe-partout, print sleeve, scrapbook, photo corners",
    ),
    "sports": _interest(
        "breathable adjustable padded training competition junior grippy foam",
        running="cycling.wear: running shoes, running shorts, stopwatch, race belt, sweatband, running cap",
        fitness="home.storage: dumbbell, kettlebell, resistance band, jump rope, exercise mat, pull-up bar",
        ball_games="toys.vehicles: football, basketball, volleyball, goal net, shin guards, ball pump",
        racket="games.parties: tennis racket, badminton set, shuttlecocks, tennis balls, racket grip, table tennis bat",
        swimming="travel.beach: swim goggles, swimsuit, swim cap, kickboard, fins, pull buoy",
    ),
    "cycling": _interest(
        "reflective gel carbon folding puncture-proof aluminium tubeless urban",
        bikes="toys.vehicles: road bike, gravel bike, city bike, balance bike, bike trailer, cargo box",
        parts="hiking.packs: bike chain, brake pads, inner tube, saddle, pedals, cassette",
        safety="hiking.camping: bike helmet, bike lock, front light, rear light, bell, bike mirror",
        wear="sports.running: cycling jersey, cycling gloves, bib shorts, overshoes, arm warmers, cycling glasses",
        repair="home.storage: tyre lever, multi-tool, chain oil, floor pump, patch kit, work stand",
    ),
    "computing": _interest(
        "mechanical wireless silent ergonomic fast curved backlit slim",
        input="games.board: keyboard, mouse, trackball, mouse pad, drawing tablet, wrist rest",
        screens="photography.cameras: monitor, monitor arm, screen filter, projector, webcam, screen cleaner",
        drives="photography.prints: flash drive, hard drive, memory stick, drive dock, card reader, network drive",
        cables="music.recording: display cable, charging cable, network cable, hub, extension lead, cable clips",
        parts="games.board: graphics card, processor, memory module, case fan, power supply, thermal paste",
    ),
    "baby": _interest(
        "soft organic washable pastel cotton safe cuddly stackable",
        feeding="cooking.serving: baby bottle, bib, high chair, sippy cup, baby spoon, nursing pillow",
        sleeping="home.bedding: cot, swaddle, night light, baby monitor, mobile, baby sleeping bag",
        changing="beauty.skin: nappies, changing mat, baby wipes, nappy bag, baby cream, nappy bin",
        outings="travel.luggage: pram, baby carrier, sun shade, foot muff, car seat, changing bag",
        bathing="beauty.bath: baby bath, bath thermometer, hooded towel, bath toy, baby shampoo, wash mitt",
    ),
    "toys": _interest(
        "wooden magnetic colourful giant musical wind-up glowing tiny",
        building="games.puzzles: building blocks, marble run, brick set, train track, gear kit, domino set",
        dolls="baby.sleeping: doll, doll house, doll pram, puppet, paper dolls, doll clothes",
        vehicles="baby.outings: toy car, fire engine, toy train, race track, toy tractor, toy boat",
        crafts="gifts.wrapping: crayons, modelling clay, sticker book, bead kit, finger paint, stamp set",
        pretend="cooking.baking: play kitchen, doctor kit, toy till, pirate costume, play tent, tool belt",
    ),
    "games": _interest(
        "cooperative classic expanded deluxe travel family fast two-player",
        board="gifts.keepsakes: board game, chess set, draughts, backgammon, ludo, tile game",
        cards="travel.papers: playing cards, trick game, trading cards, memory game, card sleeves, bluff game",
        puzzles="toys.building: jigsaw, puzzle cube, brain teaser, sudoku book, puzzle mat, escape puzzle",
        dice="books.fantasy: dice set, dice tower, yahtzee pad, dice cup, roleplay starter, character sheets",
        parties="food.snacks: quiz game, charades, drawing game, word game, karaoke set, guessing game",
    ),
    "jewellery": _interest(
        "silver golden pearl amber engraved dainty braided antique",
        rings="gifts.keepsakes: ring, signet ring, ring box, stacking rings, ring sizer, eternity ring",
        necklaces="fashion.tops: necklace, pendant, locket, choker, chain, charm",
        earrings="fashion.accessories: earrings, ear studs, hoops, ear cuff, earring stand, drop earrings",
        bracelets="beauty.nails: bracelet, bangle, anklet, charm bracelet, cuff, friendship band",
        watches="sports.running: wrist watch, watch strap, watch box, pocket watch, smart watch, watch tool",
    ),
    "fashion": _interest(
        "woollen denim striped quilted silk oversized tailored corduroy",
        tops="jewellery.necklaces: shirt, blouse, pullover, cardigan, polo shirt, tunic",
        bottoms="hiking.boots: trousers, skirt, jeans, leggings, shorts, culottes",
        coats="hiking.packs: raincoat, parka, blazer, trench coat, waistcoat, down jacket",
        shoes="sports.running: trainers, loafers, ankle boots, sandals, ballerinas, brogues",
        accessories="gifts.wrapping: scarf, belt, beret, gloves, handbag, umbrella",
    ),
    "beauty": _interest(
        "moisturising gentle vegan soothing matte rose-scented nourishing mineral",
        skin="baby.changing: face cream, serum, face mask, toner, sunscreen, eye cream",
        hair="fashion.accessories: shampoo, conditioner, hair oil, hair brush, curling iron, hair mask",
        make_up="jewellery.earrings: lipstick, mascara, foundation, eyeliner, blusher, brow pencil",
        nails="jewellery.rings: nail polish, nail file, cuticle oil, nail lamp, hand cream, nail stickers",
        bath="gifts.hampers: bath salts, soap bar, body scrub, shower gel, loofah, body lotion",
    ),
    "pets": _interest(
        "grain-free chewy plush stainless indestructible fluffy orthopaedic crunchy",
        dogs="hiking.camping: dog lead, dog bed, dog biscuits, chew bone, dog coat, fetch ball",
        cats="home.decor: cat tree, cat litter, scratching post, cat treats, feather wand, cat flap",
        birds="garden.outdoors: bird cage, bird swing, millet spray, nest box, bird bath, cuttlebone",
        fish="garden.watering: fish tank, fish flakes, tank filter, gravel, water plant, air pump",
        rodents="garden.outdoors: hamster wheel, hay rack, rabbit hutch, gnawing wood, tunnel, straw house",
    ),
}
