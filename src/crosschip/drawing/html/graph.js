// The model: operations, values, and the tree of boxes that the picture shows.

const MOST_ENDS = 6; // more inputs or outputs of a model are in a block

/** An operation, a block, a value at the end of a model, or a port at the edge of an open block. */
class Box {
  constructor(id, kind, title) {
    Object.assign(this, { id, kind, title, parent: null, children: [], open: false, dirty: true });
    Object.assign(this, { x: 0, y: 0, width: 0, height: 0, operation: null, value: null });
    Object.assign(this, { first: Infinity, last: -1, depth: 0, routes: [], hits: 0, seconds: 0 });
    this.entering = new Map(); // the port of each value that is read inside an open block
    this.leaving = new Map(); // the port of each value that an open block outputs
  }

  get isBlock() {
    return this.children.length > 0;
  }

  add(child) {
    child.parent = this;
    child.depth = this.depth + 1;
    this.children.push(child);
  }

  contains(other) {
    for (let box = other; box; box = box.parent) if (box === this) return true;
    return false;
  }

  /** The position of the upper left corner in the picture. */
  position() {
    let x = 0, y = 0;
    for (let box = this; box; box = box.parent) {
      x += box.x;
      y += box.y;
    }
    return { x, y };
  }
}

class Graph {
  constructor(data) {
    this.data = data;
    this.devices = data.devices;
    const { operations, values, operators, blocks } = data.graph;
    this.values = values.names.map((name, index) => ({
      index, name, type: values.typeTexts[values.types[index]], constant: values.constants[index],
      producer: null, home: null, model: null, readers: [],
    }));
    this.operations = operations.names.map((name, index) => ({
      index, name, type: operators[operations.types[index]], group: operations.groups[index],
      segment: operations.segments[index], origin: operations.origins[index],
      inputs: operations.inputs[index], outputs: operations.outputs[index].map((v) => this.values[v]),
      verdicts: data.decisions.verdicts[data.decisions.of[index]] ?? [],
      box: null, seconds: 0, measured: null, hit: true,
    }));
    this.boxes = new Map();
    this.blocks = blocks.map((block, index) => this.#register(new Box(`b${index}`, block.kind, block.title)));
    this.root = this.blocks[0];
    this.#connect();
    this.#buildTree(blocks);
    this.#measure(this.root);
    this.#addTimes();
    this.#texts = this.operations.map((operation) => this.#searchText(operation));
  }

  #texts;

  #register(box) {
    this.boxes.set(box.id, box);
    return box;
  }

  #connect() {
    for (const operation of this.operations) {
      for (const value of operation.outputs) value.producer = operation;
      operation.values = new Set();
      for (const [, input] of operation.inputs) {
        if (typeof input !== "number" || this.values[input].constant) continue;
        if (!operation.values.has(this.values[input])) this.values[input].readers.push(operation);
        operation.values.add(this.values[input]);
      }
    }
  }

  /** Add boxes to their parents in the executable order of the operations. */
  #buildTree(blocks) {
    const attached = new Set([this.root]);
    const attach = (index) => {
      const box = this.blocks[index];
      if (attached.has(box)) return box;
      attach(blocks[index].parent).add(box);
      attached.add(box);
      return box;
    };
    blocks.forEach((block, index) => this.#addEnds(block, "input", index));
    for (const operation of this.operations) {
      const index = this.data.graph.operations.blocks[operation.index];
      const block = attach(index);
      if (blocks[index].operation === operation.index) {
        operation.box = block;
      } else {
        operation.box = this.#register(new Box(`o${operation.index}`, "operation", operation.type));
        block.add(operation.box);
      }
      operation.box.operation = operation;
    }
    blocks.forEach((block, index) => {
      attach(index);
      this.#addEnds(block, "output", index);
    });
  }

  /** Add a box for each input or output of a model or body, in a block if they are many. */
  #addEnds(block, kind, index) {
    const ends = block[`${kind}s`] ?? [];
    let parent = this.blocks[index];
    if (ends.length > MOST_ENDS) {
      parent = this.#register(new Box(`${kind}s${index}`, "ends", `${ends.length} ${kind}s`));
      this.blocks[index].add(parent);
    }
    ends.forEach(([name, number], at) => {
      const end = this.#register(new Box(`${kind}${index}.${at}`, kind, name));
      end.value = this.values[number];
      if (kind === "input") Object.assign(end.value, { home: end, model: this.blocks[index] });
      parent.add(end);
    });
  }

  /** Set the range of operations in each block, and how many each device has. */
  #measure(box) {
    box.devices = new Map();
    const own = box.operation;
    if (own) {
      box.first = box.last = own.index;
      box.devices.set(own.group, 1);
    }
    for (const child of box.children) {
      child.depth = box.depth + 1;
      this.#measure(child);
      box.first = Math.min(box.first, child.first);
      box.last = Math.max(box.last, child.last);
      for (const [group, count] of child.devices) {
        box.devices.set(group, (box.devices.get(group) ?? 0) + count);
      }
    }
    box.count = [...box.devices.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Add measured times: a step's time is shared by the operations that it computes. */
  #addTimes() {
    for (const step of this.data.profile?.steps ?? []) {
      for (const index of step.operations) {
        const operation = this.operations[index];
        operation.seconds += step.seconds / step.operations.length;
        (operation.measured ??= []).push(step);
      }
    }
    const bySegment = new Map((this.data.profile?.segments ?? []).map((s) => [s.segment, s.seconds]));
    const sum = (box) => {
      box.seconds = box.operation?.seconds ?? 0;
      for (const child of box.children) box.seconds += sum(child);
      const segment = box.kind === "segment" ? this.operations[box.first].segment : null;
      box.shown = bySegment.get(segment) ?? box.seconds;
      return box.seconds;
    };
    sum(this.root);
    this.whole = this.data.profile?.seconds ?? 0;
  }

  device(operation) {
    return this.devices[operation.group];
  }

  segment(operation) {
    return this.data.segments[operation.segment];
  }

  #searchText(operation) {
    const fields = {
      name: operation.name, type: operation.type, device: this.device(operation)?.name ?? "",
      reason: operation.verdicts.map((v) => `${v.device}: ${v.text}`).join("\n"),
      segment: this.segment(operation)?.number ?? "", file: operation.origin,
    };
    for (const key in fields) fields[key] = fields[key].toLowerCase();
    fields.all = Object.values(fields).join("\n");
    return fields;
  }

  /** Return the operations that have all words; `device:x` and the like search one field. */
  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const [, field, rest] = word.match(/^(name|type|device|reason|segment|file):(.*)$/) ?? [];
      return field ? { field, word: rest } : { field: "all", word };
    });
    return this.operations.filter((operation) => {
      const fields = this.#texts[operation.index];
      return words.every(({ field, word }) => fields[field].includes(word));
    });
  }

  /** Set which operations match a search, and their numbers in blocks; `null` for no search. */
  setHits(operations) {
    for (const operation of this.operations) operation.hit = !operations;
    for (const box of this.boxes.values()) box.hits = 0;
    for (const operation of operations ?? []) {
      operation.hit = true;
      for (let box = operation.box; box; box = box.parent) box.hits++;
    }
  }

  /** Open or close a block, without those around it. */
  toggle(box, open = !box.open) {
    if (!box.isBlock || box.open === open) return;
    box.open = open;
    for (let each = box; each; each = each.parent) each.dirty = true;
  }

  /** Open the blocks around a box. */
  reveal(box) {
    for (let each = box.parent; each; each = each.parent) this.toggle(each, true);
  }

  /** Open blocks, the outermost first, while at most `most` boxes are shown. */
  openInitially(most) {
    this.toggle(this.root, true);
    let shown = this.root.children.length;
    let level = this.root.children;
    while (level.length) {
      const blocks = level.filter((box) => box.isBlock && box.kind !== "ends");
      const added = blocks.reduce((sum, box) => sum + box.children.length, 0);
      const opened = shown + added <= most ? blocks : [];
      for (const box of opened) this.toggle(box, true);
      shown += added;
      level = opened.flatMap((box) => box.children);
    }
  }
}
