// A layered layout: layers from top to bottom, in columns beside each other (Sugiyama's method).

const GAP_X = 16, GAP_Y = 24, TRACK = 8, SWEEPS = 10;
const MOST_COLUMNS = 8;

/** A part of a layer: a unit, or the vertical piece of a line that passes the layer. */
class Slot {
  constructor(width, unit = null) {
    Object.assign(this, { width, unit, up: [], down: [], x: 0, top: 0, bottom: 0 });
  }
}

/** A piece of a line between two layers; `entering` is spread over the lower slot if not fixed. */
class Link {
  constructor(upper, lower, leaving, entering, fixed) {
    Object.assign(this, { upper, lower, leaving, entering, fixed });
    upper.down.push(this);
    lower.up.push(this);
  }

  get start() {
    return this.upper.x + this.leaving;
  }

  get end() {
    return this.lower.x + this.entering;
  }
}

/**
 * Set the positions of units, and return the size and the points of each edge.
 *
 * The number of columns is that with which the whole is largest on a screen of the `aspect`.
 * A graph that is not higher than `leastWrapped` is in one column. Units have `width`, `height`,
 * `edge` ("top" and "bottom" for ports); edges have `from`, `to`,
 * `leaving` and `entering` (offsets, or `null` for any), and go from earlier to later units.
 */
function layered(units, edges, aspect, leastWrapped) {
  const layers = assignLayers(units, edges);
  const heights = layers.map((layer) => Math.max(...layer.map((unit) => unit.height)) + GAP_Y);
  const total = heights.reduce((sum, height) => sum + height, 0);
  const most = total > leastWrapped ? Math.min(MOST_COLUMNS, layers.length) : 1;
  let best = null;
  for (let count = 1; count <= most && (!best || count < best.count + 3); count++) {
    const columns = new Columns(cutLayers(layers, heights, edges, count), edges);
    const { width, height } = columns.measure();
    const cost = Math.max(width / aspect, height) * (1 + 0.04 * count);
    if (!best || cost < best.cost) best = { columns, count, cost };
  }
  return best.columns.result();
}

/** Put each unit below those that it reads; those that read nothing are just above their reader. */
function assignLayers(units, edges) {
  const before = new Map(units.map((unit) => [unit, []]));
  const after = new Map(units.map((unit) => [unit, []]));
  for (const { from, to } of edges) {
    before.get(to).push(from);
    after.get(from).push(to);
  }
  const depth = new Map();
  for (const unit of units) {
    depth.set(unit, Math.max(-1, ...before.get(unit).map((other) => depth.get(other))) + 1);
  }
  for (const unit of [...units].reverse()) {
    if (before.get(unit).length || !after.get(unit).length || unit.edge) continue;
    depth.set(unit, Math.min(...after.get(unit).map((other) => depth.get(other))) - 1);
  }
  const last = Math.max(0, ...depth.values());
  const layers = Array.from({ length: last + 1 }, () => []);
  for (const unit of units) layers[unit.edge === "bottom" ? last : depth.get(unit)].push(unit);
  return layers.filter((layer) => layer.length);
}

/** Cut layers into columns of about the same height, where few edges cross. */
function cutLayers(layers, heights, edges, count) {
  const layerOf = new Map(layers.flatMap((layer, index) => layer.map((unit) => [unit, index])));
  const crossing = new Array(layers.length + 1).fill(0);
  const seen = new Set();
  for (const { from, to } of edges) {
    for (let cut = layerOf.get(from) + 1; cut <= layerOf.get(to); cut++) {
      const key = `${cut}:${from.number}`;
      if (!seen.has(key)) crossing[cut]++;
      seen.add(key);
    }
  }
  const total = heights.reduce((sum, height) => sum + height, 0);
  const columns = [];
  let start = 0, position = 0;
  for (let number = 1; number < count; number++) {
    const wanted = (total * number) / count;
    let best = null;
    for (let cut = start, at = position; cut < layers.length; at += heights[cut++]) {
      if (cut === start) continue;
      const cost = Math.abs(at - wanted) / (total / count) + 0.12 * crossing[cut];
      if (best === null || cost < best.cost) best = { cut, at, cost };
    }
    if (best === null) break;
    columns.push(layers.slice(start, best.cut));
    start = best.cut;
    position = best.at;
  }
  columns.push(layers.slice(start));
  return columns;
}

/** Columns of layers, with the slots that lines pass. */
class Columns {
  constructor(columns, edges) {
    this.slots = new Map();
    this.passing = new Map();
    // Above and below each column are layers for the lines from and to other columns.
    this.columns = columns.map((column, number) => [
      [],
      ...column.map((layer, index) => layer.map((unit) => {
        const slot = new Slot(unit.width, unit);
        Object.assign(slot, { column: number, layer: index + 1 });
        this.slots.set(unit, slot);
        return slot;
      })),
      [],
    ]);
    this.bridges = new Map();
    this.paths = edges.map((edge) => this.#path(edge));
  }

  /** Lead an edge through the layers between its ends; return the slots that it passes. */
  #path(edge) {
    const from = this.slots.get(edge.from), to = this.slots.get(edge.to);
    const key = `${edge.from.number}:${edge.leaving ?? ""}:${edge.transfer ? 1 : 0}`;
    const leaving = edge.leaving ?? from.width / 2;
    const path = [from];
    let slot = from;
    const pass = (column, start, end, mark) => {
      for (let layer = start; layer < end; layer++) {
        const address = `${key}:${mark}:${column}:${layer}`;
        let next = this.passing.get(address);
        if (!next) {
          this.passing.set(address, (next = new Slot(4)));
          this.columns[column][layer].push(next);
          if (slot && slot !== "bridge") new Link(slot, next, slot === from ? leaving : 2, 2, true);
        }
        path.push((slot = next));
      }
    };
    if (from.column === to.column) {
      pass(from.column, from.layer + 1, to.layer, "");
    } else {
      pass(from.column, from.layer + 1, this.columns[from.column].length, "");
      const exit = slot;
      slot = "bridge";
      pass(to.column, 0, to.layer, `from ${from.column}`);
      const entry = path[path.indexOf(exit) + 1];
      this.bridges.set(`${key}:${to.column}`, { exit, entry, target: to.column, source: from.column });
    }
    const fixed = edge.entering !== null;
    const link = new Link(slot, to, slot === from ? leaving : 2, edge.entering ?? to.width / 2, fixed);
    path.push(to);
    return { path, link, leaving };
  }

  /** Set the positions in each column, and return the size of the whole. */
  measure() {
    this.widths = this.columns.map(placeLayers);
    const lines = this.bridges.size;
    const heights = this.columns.map((column) => column.reduce((sum, layer, index) =>
      sum + (index && index < column.length - 1 ? layerHeight(layer) + GAP_Y : 0), 0));
    return {
      width: this.widths.reduce((sum, width) => sum + width)
        + (this.columns.length - 1) * (2 * TRACK + GAP_X) + lines * TRACK,
      height: Math.max(...heights) + (lines ? 2 * TRACK * lines + GAP_Y : 0),
    };
  }

  /** Set the positions of the units, and return the size and the points of each edge. */
  result() {
    const bridges = [...this.bridges.values()].sort(
      (a, b) => a.source - b.source || b.exit.x - a.exit.x);
    let left = 0, height = 0;
    this.columns.forEach((column, number) => {
      const into = bridges.filter((bridge) => bridge.target === number);
      left += number ? TRACK * (into.length + 2) + GAP_X : 0;
      into.forEach((bridge, index) => {
        bridge.x = left - GAP_X / 2 - TRACK * (into.length - index);
      });
      for (const slot of column.flat()) slot.x += left;
      left += this.widths[number];
    });
    const lower = shareTracks(bridges, (bridge) => [bridge.exit.x, bridge.x]);
    const upper = shareTracks([...bridges].reverse(), (bridge) => [bridge.x, bridge.entry.x]);
    const top = upper.count ? TRACK * upper.count + GAP_Y / 2 : 0;
    for (const column of this.columns) height = Math.max(height, placeRows(column, top));
    for (const bridge of bridges) {
      const low = height + GAP_Y / 2 + TRACK * lower.of.get(bridge);
      const high = top - GAP_Y / 2 - TRACK * upper.of.get(bridge);
      const points = [
        [bridge.exit.x + 2, low], [bridge.x, low], [bridge.x, high], [bridge.entry.x + 2, high],
      ];
      (bridge.exit.bridges ??= new Map()).set(bridge.entry, points);
    }
    return {
      width: left, height: height + (lower.count ? TRACK * lower.count + GAP_Y / 2 : 0),
      routes: this.paths.map((each) => this.#points(each)),
    };
  }

  /** The points of an edge: pairs of the lower end in a layer and the upper end in the next. */
  #points({ path, link, leaving }) {
    const points = [];
    const first = path[0];
    points.push([first.x + leaving, first.top + first.unit.height]);
    if (first.bottom > first.top + first.unit.height) points.push([first.x + leaving, first.bottom]);
    for (let index = 1; index < path.length - 1; index++) {
      const slot = path[index];
      points.push([slot.x + 2, slot.top], [slot.x + 2, slot.bottom]);
      const bridge = slot.bridges?.get(path[index + 1]) ?? [];
      points.push(...bridge.map((point) => [...point]));
    }
    points.push([link.end, path.at(-1).top]);
    return points;
  }
}

/** Set the vertical positions in a column, and return its lower end. */
function placeRows(column, top) {
  let y = top;
  column.forEach((layer, index) => {
    const height = layerHeight(layer), isLast = index === column.length - 1;
    for (const slot of layer) {
      slot.top = isLast ? y - GAP_Y / 2 : y;
      slot.bottom = slot.top + height;
      if (slot.unit) Object.assign(slot.unit, { x: slot.x, y });
    }
    if (layer.length && !isLast) y += index ? height + GAP_Y : GAP_Y / 2;
  });
  return y - GAP_Y;
}

/** Give each line the first track in which it overlaps no other. */
function shareTracks(lines, interval) {
  const tracks = [], of = new Map();
  for (const line of lines) {
    const [start, end] = interval(line);
    let track = 0;
    while (tracks[track]?.some(([from, to]) => start < to + TRACK && from < end + TRACK)) track++;
    (tracks[track] ??= []).push([start, end]);
    of.set(line, track);
  }
  return { of, count: tracks.length };
}

function layerHeight(layer) {
  return Math.max(0, ...layer.map((slot) => slot.unit?.height ?? 0));
}

/** Order the slots of each layer, set their positions from 0 on, and return the width. */
function placeLayers(layers) {
  orderLayers(layers);
  for (const layer of layers) placeNear(layer, layer.map(() => 0));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0, both = sweep >= SWEEPS - 2;
    for (const layer of down ? layers : [...layers].reverse()) {
      placeNear(layer, layer.map((slot) => idealPosition(slot, down || both, !down || both)));
    }
    spreadLinks(layers);
  }
  straighten(layers);
  spreadLinks(layers);
  const all = layers.flat();
  const left = Math.min(...all.map((slot) => slot.x), Infinity);
  for (const slot of all) slot.x -= left;
  return Math.max(0, ...all.map((slot) => slot.x + slot.width));
}

/** Sort each layer by the barycentres of neighbours; keep the order with the fewest crossings. */
function orderLayers(layers) {
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
    const down = sweep % 2 === 0;
    const rank = new Map();
    for (const layer of down ? layers : [...layers].reverse()) {
      const centres = new Map(layer.map((slot, index) => {
        const around = (down ? slot.up : slot.down).map((link) => down
          ? rank.get(link.upper) + link.leaving / (link.upper.width + 1)
          : rank.get(link.lower) + link.entering / (link.lower.width + 1));
        return [slot, around.length ? around.reduce((a, b) => a + b) / around.length : index];
      }));
      layer.sort((a, b) => centres.get(a) - centres.get(b));
      layer.forEach((slot, index) => rank.set(slot, index));
    }
    const count = crossings(layers);
    if (count < fewest) [best, fewest] = [layers.map((layer) => [...layer]), count];
  }
  layers.forEach((layer, index) => layer.splice(0, layer.length, ...best[index]));
}

function crossings(layers) {
  let count = 0;
  for (let index = 1; index < layers.length; index++) {
    const rank = new Map(layers[index].map((slot, position) => [slot, position]));
    const ends = [];
    for (const slot of layers[index - 1]) {
      const targets = slot.down.map((link) => [rank.get(link.lower), link.entering]);
      for (const [r, e] of targets) {
        for (const [otherRank, otherEntering] of ends) {
          if (otherRank > r || (otherRank === r && otherEntering > e)) count++;
        }
      }
      ends.push(...targets);
    }
  }
  return count;
}

/** The mean of the positions at which the links of a slot would be vertical. */
function idealPosition(slot, up, down) {
  const wanted = [];
  if (up) for (const link of slot.up) wanted.push(link.start - link.entering);
  if (down) for (const link of slot.down) wanted.push(link.end - link.leaving);
  return wanted.length ? wanted.reduce((a, b) => a + b) / wanted.length : slot.x;
}

/** Set the positions nearest to the wanted ones that keep the order (pool adjacent violators). */
function placeNear(layer, wanted) {
  const pools = [];
  const offsets = [];
  let offset = 0;
  layer.forEach((slot, index) => {
    offsets.push(offset);
    let pool = { mean: wanted[index] - offset, weight: slot.unit ? 1 : 4, count: 1 };
    while (pools.length && pools.at(-1).mean > pool.mean) {
      const other = pools.pop();
      const weight = other.weight + pool.weight;
      const mean = (other.mean * other.weight + pool.mean * pool.weight) / weight;
      pool = { mean, weight, count: other.count + pool.count };
    }
    pools.push(pool);
    offset += slot.width + GAP_X;
  });
  let index = 0;
  for (const { mean, count } of pools) {
    for (let end = index + count; index < end; index++) layer[index].x = mean + offsets[index];
  }
}

/** Make the lines that pass layers straight where their neighbours permit it. */
function straighten(layers) {
  const bounds = new Map();
  for (const layer of layers) {
    layer.forEach((slot, index) => bounds.set(slot, [layer[index - 1], layer[index + 1]]));
  }
  for (const slot of layers.flat()) {
    if (!slot.unit && !slot.up.some((link) => !link.upper.unit)) straightenFrom(slot, bounds);
  }
}

function straightenFrom(top, bounds) {
  const pieces = [];
  let low = -Infinity, high = Infinity, piece = top;
  while (piece) {
    const [before, after] = bounds.get(piece);
    const least = before ? before.x + before.width + GAP_X : -Infinity;
    const most = after ? after.x - GAP_X - piece.width : Infinity;
    if (Math.max(low, least) > Math.min(high, most)) break;
    [low, high] = [Math.max(low, least), Math.min(high, most)];
    pieces.push(piece);
    piece = piece.down.find((link) => !link.lower.unit)?.lower;
  }
  const mean = pieces.reduce((sum, each) => sum + each.x, 0) / Math.max(1, pieces.length);
  for (const each of pieces) each.x = Math.min(Math.max(mean, low), high);
  if (piece && pieces.length) straightenFrom(piece, bounds);
}

/** Spread the links into each slot over its width, in the order of their upper ends. */
function spreadLinks(layers) {
  for (const slot of layers.flat()) {
    const links = slot.up.filter((link) => !link.fixed).sort((a, b) => a.start - b.start);
    links.forEach((link, index) => (link.entering = (slot.width * (index + 1)) / (links.length + 1)));
  }
}
