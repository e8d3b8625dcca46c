// The layout of open blocks, the innermost first: boxes, ports at their edges, and lines.

const ROW = 20, FONT = 12, SMALL = 10.5, PAD = 10, HEAD = 24, CLOSED = 40, MOST_PORTS = 6;
const FACE = "system-ui, Helvetica, Arial, sans-serif";

class TextMeasure {
  #widths = new Map();
  #context = document.createElement("canvas").getContext("2d");

  width(text, font) {
    const key = `${font}|${text}`;
    let width = this.#widths.get(key);
    if (width === undefined) {
      this.#context.font = font;
      this.#widths.set(key, (width = this.#context.measureText(text).width));
    }
    return width;
  }

  /** Return a text cut with an ellipsis if it is wider than `most`. */
  cut(text, font, most) {
    if (this.width(text, font) <= most) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.width(`${text.slice(0, middle)}…`, font) <= most) low = middle;
      else high = middle - 1;
    }
    return `${text.slice(0, low)}…`;
  }
}

const FONTS = { row: `${FONT}px ${FACE}`, bold: `600 ${FONT}px ${FACE}`, small: `${SMALL}px ${FACE}` };

function plural(count, noun) {
  return count === 1 ? `1 ${noun}` : `${count.toLocaleString("en")} ${noun}s`;
}

function duration(seconds) {
  const size = Math.abs(seconds);
  if (size >= 1) return `${seconds.toPrecision(3)} s`;
  if (size >= 1e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
  return `${(seconds * 1e6).toPrecision(3)} µs`;
}

function byteCount(count) {
  if (count < 1000) return `${count} B`;
  const power = Math.min(3, Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB"][power]}`;
}

class Layout {
  constructor(graph, aspect) {
    this.graph = graph;
    this.aspect = aspect;
    this.measure = new TextMeasure();
    this.severalSegments = graph.data.segments.length > 1;
    this.hasTimes = graph.operations.some((operation) => operation.seconds > 0);
  }

  /** Lay out what has changed. */
  update() {
    this.#arrange(this.graph.root);
  }

  #arrange(box) {
    if (!box.dirty) return;
    box.dirty = false;
    if (!box.open) {
      this.#setClosedSize(box);
      return;
    }
    for (const child of box.children) this.#arrange(child);
    const { links, ports } = this.#links(box);
    const units = this.#units(box, links, ports);
    const edges = links.map((link) => ({
      from: units.of.get(link.source), to: units.of.get(link.target), transfer: link.transfer,
      leaving: link.source.open ? link.source.leaving.get(link.sourceValue)?.x ?? null : null,
      entering: link.target.open ? link.target.entering.get(link.targetValue)?.x ?? null : null,
    }));
    const forward = edges.map((edge, index) => index)
      .filter((index) => edges[index].from.number < edges[index].to.number);
    const [aspect, leastWrapped] = box.parent ? [0.8, 900] : [this.aspect, 480];
    const shown = forward.map((index) => edges[index]);
    const size = layered(units.list, shown, aspect, leastWrapped);
    this.#place(box, units.list, size);
    box.routes = forward.map((index, at) => ({
      ...links[index], points: this.#attached(box, links[index], size.routes[at]),
    }));
    box.paths = null;
  }

  /** Set the size of an operation, an end, or a closed block, and the texts in it. */
  #setClosedSize(box) {
    const { measure } = this;
    if (box.isBlock) {
      box.label = measure.cut(box.title, FONTS.bold, 220);
      box.detail = box.operation ? box.operation.type
        : box.kind === "ends" ? box.children.map((end) => end.title).join(", ")
          : plural(box.count, "operation");
      box.detail = measure.cut(box.detail, FONTS.small, 180);
      box.time = box.shown ? duration(box.shown) : "";
      const below = measure.width(box.detail, FONTS.small) + measure.width(box.time, FONTS.small);
      box.width = Math.max(measure.width(box.label, FONTS.bold) + 30, below + 34, 110);
      box.height = CLOSED;
    } else if (box.kind === "operation") {
      const { operation } = box;
      box.label = measure.cut(operation.type, FONTS.row, 190);
      box.detail = this.hasTimes
        ? (operation.seconds ? duration(operation.seconds) : "")
        : this.#brief(operation.outputs[0]?.type ?? "");
      box.detail = measure.cut(box.detail, FONTS.small, 150);
      box.strip = this.#strip(box);
      box.width = measure.width(box.label, FONTS.row) + 2 * PAD + box.strip.length * 7
        + (box.strip ? 6 : 0) + (box.detail ? measure.width(box.detail, FONTS.small) + 14 : 0);
      box.height = ROW;
    } else {
      box.label = measure.cut(box.title, FONTS.bold, 200);
      box.detail = measure.cut(box.value.type, FONTS.small, 200);
      box.width = Math.max(
        measure.width(box.label, FONTS.bold), measure.width(box.detail, FONTS.small)) + 24;
      box.height = 34;
    }
  }

  /** The number of an operation's segment where no block around it shows it. */
  #strip(box) {
    if (!this.severalSegments) return "";
    for (let outer = box.parent; outer; outer = outer.parent) if (outer.kind === "segment") return "";
    return this.graph.segment(box.operation)?.number.split(".").at(-1) ?? "";
  }

  #brief(type) {
    const match = type.match(/^(\w+)\[(.*?)\]/);
    return match ? `${match[2].replaceAll(", ", "×") || "scalar"}` : type;
  }

  /** Return the connections between the children of an open block, and the ports at its edges. */
  #links(box) {
    const links = new Map();
    const ports = { entering: new Map(), leaving: new Map() };
    const childOf = (inner) => {
      while (inner && inner.parent !== box) inner = inner.parent;
      return inner;
    };
    const add = (source, target, value, transfer) => {
      const sourceValue = source.open ? value : null, targetValue = target.open ? value : null;
      const ends = [source.leaving?.get(value)?.number, target.entering?.get(value)?.number];
      const key = `${source.id}|${target.id}|${ends}|${transfer}`;
      if (!links.has(key)) {
        links.set(key, { source, target, sourceValue, targetValue, values: new Set(), transfer });
      }
      links.get(key).values.add(value);
    };
    const port = (map, value) => {
      if (!map.has(value)) map.set(value, { id: `p${map === ports.leaving}${value.index}` });
      return map.get(value);
    };
    const isWithin = (model) => model && model !== box && box.contains(model);
    for (let index = box.first; index <= box.last; index++) {
      const operation = this.graph.operations[index];
      const target = childOf(operation.box);
      for (const value of target ? operation.values : []) {
        const { producer, home } = value;
        if (isWithin(value.model)) continue;
        const origin = producer?.box ?? home;
        const source = origin && box.contains(origin) ? childOf(origin) : port(ports.entering, value);
        const group = producer?.group ?? operation.group;
        if (source !== target) add(source, target, value, group !== operation.group);
      }
      for (const value of target ? operation.outputs : []) {
        const leaves = value.readers.some((reader) => !box.contains(reader.box))
          || this.#endsOutside(box, value);
        if (leaves && !this.#isInBodyOf(operation.box, box)) {
          add(target, port(ports.leaving, value), value, false);
        }
      }
    }
    for (const end of box.children.flatMap((child) => (child.kind === "ends" ? child.children : [child]))) {
      const { value } = end;
      if (!value || value.constant) continue;
      const origin = value.producer?.box ?? value.home;
      if (end.kind === "input" && box.kind === "ends") add(end, port(ports.leaving, value), value, false);
      if (end.kind !== "output" || !origin) continue;
      if (box.kind === "ends") add(port(ports.entering, value), end, value, false);
      else if (box.contains(origin)) add(childOf(origin), childOf(end), value, false);
    }
    return { links: [...links.values()], ports };
  }

  #isInBodyOf(inner, box) {
    for (let each = inner.parent; each && each !== box; each = each.parent) {
      if (each.kind === "body") return true;
    }
    return false;
  }

  /** Whether a value is an output of the model or body around a block. */
  #endsOutside(box, value) {
    this.outputs ??= new Set([...this.graph.boxes.values()]
      .filter((each) => each.kind === "output").map((each) => each.value));
    return box !== this.graph.root && !["body", "ends"].includes(box.kind) && this.outputs.has(value);
  }

  /** Return what is placed: ports, boxes, and chains of operations as stacks of rows. */
  #units(box, links, ports) {
    const next = new Map(), previous = new Map();
    const one = (map, key, link) => map.set(key, map.has(key) ? null : link);
    for (const link of links) {
      one(next, link.source, link);
      one(previous, link.target, link);
    }
    const list = [], of = new Map();
    const entering = this.#portUnits(ports.entering, "top", of);
    list.push(...entering);
    for (const child of box.children) {
      const link = previous.get(child);
      const above = link && next.get(link.source) === link ? of.get(link.source) : null;
      if (above?.boxes && !link.transfer && this.#stacks(link.source, child)) {
        above.boxes.push(child);
        of.set(child, above);
      } else {
        const unit = { boxes: [child] };
        list.push(unit);
        of.set(child, unit);
      }
    }
    const leaving = this.#portUnits(ports.leaving, "bottom", of);
    list.push(...leaving);
    list.forEach((unit, number) => {
      unit.number = number;
      if (!unit.boxes) return;
      unit.width = Math.max(...unit.boxes.map((each) => each.width));
      unit.height = unit.boxes.reduce((sum, each) => sum + each.height, 0);
    });
    box.entering = new Map([...ports.entering].map(([value, p]) => [value, of.get(p)]));
    box.leaving = new Map([...ports.leaving].map(([value, p]) => [value, of.get(p)]));
    return { list, of };
  }

  #stacks(above, below) {
    return above.kind === "operation" && below.kind === "operation"
      && above.operation.group === below.operation.group && above.strip === below.strip;
  }

  /** Return a unit for each port, or one for all if they are many. */
  #portUnits(ports, edge, of) {
    const unit = () => ({ edge, width: 2, height: 0 });
    const shared = ports.size > MOST_PORTS ? unit() : null;
    const units = [];
    for (const port of ports.values()) {
      const each = shared ?? unit();
      if (!units.includes(each)) units.push(each);
      of.set(port, each);
    }
    return units;
  }

  #place(box, units, size) {
    const title = this.measure.width(box.title, FONTS.bold) + 60;
    const least = box.parent ? Math.max(size.width, Math.min(title, 240)) : size.width;
    const left = PAD + (least - size.width) / 2, top = box.parent ? HEAD + PAD : 0;
    for (const unit of units) {
      unit.x += left;
      if (!unit.boxes) {
        unit.x += 1;
        continue;
      }
      let y = unit.y + top;
      for (const child of unit.boxes) {
        Object.assign(child, { x: unit.x, y, shownWidth: unit.width });
        y += child.height;
      }
    }
    box.width = least + 2 * PAD;
    box.height = size.height + top + PAD;
    box.label = this.measure.cut(box.title, FONTS.bold, box.width - 44);
    for (const point of size.routes.flat()) {
      point[0] += left;
      point[1] += top;
    }
  }

  /** Lengthen the lines of ports to the edges of the block. */
  #attached(box, link, points) {
    const isPort = (end) => !(end instanceof Box);
    if (isPort(link.source)) points.unshift([points[0][0], HEAD]);
    if (isPort(link.target)) points.push([points.at(-1)[0], box.height]);
    return points;
  }
}
