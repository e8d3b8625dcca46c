// The panel beside the graph: a summary, or the details of what is selected; and the results of a
// search. All texts are set as text, never as markup.

/** Return an element with classes, texts and elements in it. */
function element(tag, classes, ...content) {
  const node = document.createElement(tag);
  if (classes) node.className = classes;
  node.append(...content.filter((each) => each !== null && each !== undefined && each !== ""));
  return node;
}

function swatch(colour) {
  const node = element("span", "swatch");
  node.style.background = colour ?? "transparent";
  return node;
}

/** Return a table; columns that start with `#` are numbers. */
function table(columns, rows) {
  const kind = (column) => (column.startsWith("#") ? "number" : "");
  const head = element("tr", "", ...columns.map((c) => element("th", kind(c), c.replace("#", ""))));
  const body = rows.map((row) => element("tr", "", ...row.map((cell, index) =>
    element("td", kind(columns[index]), ...(Array.isArray(cell) ? cell : [cell])))));
  return element("table", "", element("thead", "", head), element("tbody", "", ...body));
}

/** The type of a value; a short one does not break. */
function typeCell({ type }) {
  return element("span", type.length < 22 ? "narrow" : "", type);
}

const MOST_ROWS = 30;

class Panel {
  constructor(app) {
    this.app = app;
    this.details = document.getElementById("details");
    this.results = document.getElementById("results");
  }

  get graph() {
    return this.app.graph;
  }

  get data() {
    return this.app.graph.data;
  }

  show(box) {
    let parts = this.#summary();
    if (box?.value) parts = this.#end(box);
    else if (box?.operation) parts = this.#operation(box.operation);
    else if (box) parts = [];
    if (box?.isBlock) parts.push(...this.#block(box));
    if (box) {
      const up = element("button", "link", "← Summary");
      up.addEventListener("click", () => this.app.select(null));
      parts.unshift(up);
    }
    this.details.replaceChildren(...parts);
    this.details.scrollTop = 0;
  }

  #link(box, text) {
    const button = element("button", "link", text);
    button.addEventListener("click", () => this.app.goTo(box));
    return button;
  }

  #operationLink(operation) {
    return this.#link(operation.box, operation.name || operation.type);
  }

  #deviceName(name) {
    const device = this.graph.devices.find((each) => each.name === name);
    return element("span", "device", swatch(device?.colour), name);
  }

  #device(group) {
    const device = this.graph.devices[group];
    return this.#deviceName(device?.name ?? "no device");
  }

  // What is shown while nothing is selected.

  #summary() {
    const { data, graph } = this;
    const total = graph.operations.length;
    const parts = [element("h2", "", "Summary")];
    const bar = element("div", "share");
    for (const device of graph.devices) {
      const part = element("i");
      part.style.width = `${(100 * device.operations) / Math.max(total, 1)}%`;
      part.style.background = device.colour;
      bar.append(part);
    }
    parts.push(bar);
    const segments = (index) => data.segments.filter((segment) => segment.device === index);
    const memory = data.costs?.memory ?? {};
    const columns = ["device", "#operations", "#share", "#segments", ...(data.profile ? ["#time"] : [])];
    parts.push(table(columns,
      graph.devices.map((device, index) => [
        this.#deviceName(device.name), device.operations.toLocaleString("en"),
        `${((100 * device.operations) / Math.max(total, 1)).toFixed(1)} %`,
        segments(index).length || "",
        ...(data.profile ? [this.#segmentTime(device, segments(index))] : []),
      ])));
    const bytes = Object.entries(memory).map(([name, count]) => `${name} ${byteCount(count)}`);
    if (bytes.length) parts.push(element("p", "", `memory of weights and tensors: ${bytes.join(", ")}`));
    if (data.problem) parts.push(element("p", "problem", data.problem));
    parts.push(...data.notes.map((note) => element("p", "", note)));
    parts.push(...this.#times(), ...this.#slowest(), ...this.#segmentTable(), ...this.#transferTable());
    parts.push(element("p", "quiet", `crosschip ${data.version}`));
    return parts;
  }

  /** The time of a device's segments; of the runtime, without that of the bodies it runs. */
  #segmentTime(device, segments) {
    if (device.name === "runtime") return duration(this.data.profile.others.runtime);
    const numbers = new Set(segments.map((segment) => this.data.segments.indexOf(segment)));
    const seconds = this.data.profile.segments.filter((each) => numbers.has(each.segment))
      .reduce((sum, each) => sum + each.seconds, 0);
    return seconds ? duration(seconds) : "";
  }

  #times() {
    const { costs, profile } = this.data;
    if (!costs && !profile) return [];
    const parts = [element("h2", "", "Predicted and measured")];
    const rows = [];
    if (costs) rows.push(["predicted", duration(costs.predicted)]);
    if (profile) rows.push([`measured, mean of ${plural(profile.runs, "run")}`, duration(profile.seconds)]);
    if (costs && profile) {
      rows.push(["difference", `${((100 * (costs.predicted - profile.seconds)) / profile.seconds).toFixed(1)} %`]);
    }
    for (const [device, seconds] of Object.entries(costs?.launches ?? {})) {
      rows.push([`start of a segment on ${device}`, duration(seconds)]);
    }
    for (const [name, seconds] of Object.entries(profile?.others ?? {})) {
      if (seconds) rows.push([name, duration(seconds)]);
    }
    parts.push(table(["", "#time"], rows));
    if (costs?.candidates.length) {
      parts.push(element("h2", "", "Placements that were compared"));
      parts.push(table(["placement", "#predicted", "#measured", "#segments"], costs.candidates.map((each) =>
        [[each.name, element("div", "quiet", each.reason)], duration(each.predicted_seconds),
          each.seconds === null ? "" : duration(each.seconds), each.segments])));
    }
    return parts;
  }

  #slowest() {
    const slow = this.graph.operations.filter((o) => o.seconds > 0)
      .sort((a, b) => b.seconds - a.seconds).slice(0, 10);
    if (!slow.length) return [];
    return [element("h2", "", "Operations that take longest"),
      table(["operation", "operator", "#time"],
        slow.map((o) => [this.#operationLink(o), o.type, duration(o.seconds)]))];
  }

  #segmentTable() {
    const { segments, profile } = this.data;
    if (!segments.length) return [];
    const times = new Map((profile?.segments ?? []).map((each) => [each.segment, each.seconds]));
    const first = new Map();
    for (const operation of this.graph.operations) {
      if (!first.has(operation.segment)) first.set(operation.segment, operation.box);
    }
    const rows = segments.slice(0, MOST_ROWS).map((segment, index) => [
      this.#link(this.#segmentBox(first.get(index)), segment.number), this.#device(segment.device),
      segment.operations, ...(profile ? [times.has(index) ? duration(times.get(index)) : ""] : []),
    ]);
    const more = segments.length > MOST_ROWS ? [element("p", "quiet", `and ${segments.length - MOST_ROWS} more`)] : [];
    return [element("h2", "", "Segments"),
      table(["segment", "device", "#operations", ...(profile ? ["#time"] : [])], rows), ...more];
  }

  #segmentBox(box) {
    for (let each = box; each; each = each.parent) if (each.kind === "segment") return each;
    return box;
  }

  #transferTable() {
    const transfers = this.data.costs?.transfers ?? [];
    if (!transfers.length) return [];
    return [element("h2", "", "Transfers"), this.#transfers(transfers)];
  }

  #transfers(transfers) {
    return table(["value", "from", "to", "#size", "#time"], transfers.slice(0, MOST_ROWS).map((each) => [
      this.#value(each), each.source, each.destination, byteCount(each.bytes), duration(each.seconds)]));
  }

  #value({ value, operand }) {
    const box = this.graph.values[value]?.producer?.box ?? this.graph.values[value]?.home;
    return box ? this.#link(box, operand) : operand;
  }

  // What is shown for an operation.

  #operation(operation) {
    const parts = [element("p", "heading", operation.type), element("p", "quiet", operation.name)];
    const segment = this.graph.segment(operation);
    const where = element("p", "", this.#device(operation.group));
    if (segment) where.append(element("span", "quiet", ` in segment ${segment.number}`));
    parts.push(where);
    const original = this.data.decisions.originals[operation.index];
    if (original) parts.push(element("p", "", `part of the decomposition of ${original}`));
    if (this.data.decisions.inFloat.includes(operation.name)) {
      parts.push(element("p", "", "computes in float32, by the mixed precision"));
    }
    parts.push(...this.#verdicts(operation), ...this.#costs(operation),
      ...this.#quirks(operation), ...this.#operands(operation));
    if (operation.origin) {
      parts.push(element("h2", "", "In the file"), element("p", "quiet", operation.origin));
    }
    return parts;
  }

  #verdicts(operation) {
    const here = this.graph.device(operation)?.name;
    const whole = operation.verdicts.length ? null : this.#control(operation.box.parent);
    if (whole) {
      return [element("h2", "", "Why there"), element("p", "", "It runs as a part of ",
        this.#operationLink(whole.operation), ` on ${here ?? "no device"}.`)];
    }
    const rows = operation.verdicts.map(({ device, runs, text }) => {
      const mark = device === here ? "runs here" : runs ? "could" : "declines";
      return [this.#deviceName(device), element("span", runs ? "yes narrow" : "no narrow", mark),
        element("span", runs ? "" : "reason", text)];
    });
    const asked = new Set(operation.verdicts.map(({ device }) => device));
    for (const device of this.data.decisions.order) {
      if (!asked.has(device)) {
        rows.push([this.#deviceName(device), element("span", "no narrow", "not asked"),
          element("span", "quiet", "a preferred device runs it")]);
      }
    }
    return [element("h2", "", "Why there"), table(["device", "", "reason"], rows)];
  }

  /** What the engine computes wrong, and the device avoids, for operators of this type. */
  #quirks(operation) {
    const here = this.graph.device(operation)?.name;
    const quirks = this.data.quirks?.[here]?.[operation.type] ?? [];
    if (!quirks.length) return [];
    return [element("h2", "", "Quirks avoided"),
      element("ul", "", ...quirks.map((text) => element("li", "quiet", text)))];
  }

  /** The block of control flow around a box; `null` for none. */
  #control(box) {
    return !box || box.kind === "control" ? box : this.#control(box.parent);
  }

  #costs(operation) {
    const parts = [];
    if (operation.measured) {
      parts.push(element("h2", "", "Measured"), table(["step of the engine", "#operations", "#time"],
        operation.measured.map((step) => [step.name, step.operations.length, duration(step.seconds)])));
    }
    const block = this.#costBlock(operation);
    if (block) {
      const sign = (seconds) => (seconds < 0 ? duration(seconds) : `+${duration(seconds)}`);
      const here = element("span", block.estimated ? "estimate" : "",
        `${duration(block.seconds)} ± ${duration(block.uncertainty)}${block.estimated ? " (estimated)" : ""}`);
      parts.push(element("h2", "", `Cost of its block of ${plural(block.operations.length, "operation")}`));
      const transfers = (count) => (count > 0 ? `+${count}` : String(count));
      parts.push(table(["device", "#time", "#transfers"], [
        [this.#deviceName(block.device), here, ""],
        ...block.alternatives.map((each) => [this.#deviceName(each.device),
          `${sign(each.seconds)} for the model`, transfers(each.transfers)]),
      ]));
    }
    const values = new Set([...operation.values, ...operation.outputs].map((value) => value.index));
    const moved = (this.data.costs?.transfers ?? []).filter((each) => values.has(each.value));
    if (moved.length) parts.push(element("h2", "", "Transfers"), this.#transfers(moved));
    return parts;
  }

  #costBlock(operation) {
    if (!this.costBlocks) {
      this.costBlocks = new Map();
      for (const block of this.data.costs?.blocks ?? []) {
        for (const index of block.operations) this.costBlocks.set(index, block);
      }
    }
    return this.costBlocks.get(operation.index);
  }

  #operands(operation) {
    const inputs = operation.inputs.map(([slot, input]) => {
      if (typeof input !== "number") return [element("span", "narrow", slot), input, ""];
      const value = this.graph.values[input];
      const origin = value.producer?.box ?? value.home;
      const shown = typeof value.constant === "string" ? value.constant
        : value.constant ? element("span", "quiet", `constant ${value.name}`)
          : origin ? this.#link(origin, value.name) : value.name;
      return [element("span", "narrow", slot), shown, typeCell(value)];
    });
    const outputs = operation.outputs.map((value) => [
      value.name, value.readers.slice(0, 8).flatMap((reader, index) => [
        ...(index ? [", "] : []), this.#operationLink(reader)]), typeCell(value)]);
    return [element("h2", "", "Inputs"), table(["slot", "value", "type"], inputs),
      element("h2", "", "Outputs"), table(["value", "read by", "type"], outputs)];
  }

  #end(box) {
    const readers = box.value.readers.slice(0, MOST_ROWS).map((o) => [o.type, this.#operationLink(o)]);
    const parts = [element("p", "heading", box.title), element("p", "quiet", `${box.kind}: ${box.value.type}`)];
    if (box.kind === "input") parts.push(element("h2", "", "Read by"), table(["operator", "operation"], readers));
    else if (box.value.producer) {
      parts.push(element("h2", "", "Computed by"), table(["operator", "operation"],
        [[box.value.producer.type, this.#operationLink(box.value.producer)]]));
    }
    return parts;
  }

  // What is shown for a block.

  #block(box) {
    const inside = this.graph.operations.slice(box.first, box.last + 1);
    const counts = new Map();
    for (const operation of inside) {
      const key = `${operation.type}|${operation.group}`;
      const entry = counts.get(key) ?? { operation, count: 0, seconds: 0 };
      entry.count++;
      entry.seconds += operation.seconds;
      counts.set(key, entry);
    }
    const rows = [...counts.values()].sort((a, b) => b.seconds - a.seconds || b.count - a.count);
    const timed = box.seconds > 0;
    const toggle = element("button", "", box.open ? "Close" : "Open");
    toggle.addEventListener("click", () => this.app.toggle(box));
    const parts = box.operation ? [] : [
      element("p", "heading", box.title),
      element("p", "quiet", plural(inside.length, "operation")
        + (timed ? `, ${duration(box.seconds)} in steps of the engine` : "")),
    ];
    const segment = box.kind === "segment" ? this.graph.segment(inside[0]) : null;
    if (segment) {
      parts.push(element("p", "", this.#device(segment.device)));
      if (segment.shapes) parts.push(element("p", "quiet", `shapes: ${segment.shapes}`));
      const time = this.data.profile?.segments.find((s) => s.segment === inside[0].segment);
      if (time) {
        parts.push(element("p", "", `${duration(time.seconds)} a run`
          + (time.calls === 1 ? "" : `, in ${time.calls} calls`)
          + (time.waiting ? `, ${duration(time.waiting)} of it waiting` : "")));
      }
      const values = (numbers) => numbers.map((n) => [this.#value({ value: n, operand: this.graph.values[n].name }),
        this.graph.values[n].type]);
      parts.push(element("h2", "", "Reads"), table(["value", "type"], values(segment.inputs)),
        element("h2", "", "Outputs"), table(["value", "type"], values(segment.outputs)));
    }
    parts.push(toggle, element("h2", "", "Operations"),
      table(["operator", "device", "#count", ...(timed ? ["#time"] : [])], rows.map(({ operation, count, seconds }) => [
        this.#link(operation.box, operation.type), this.#device(operation.group), count,
        ...(timed ? [seconds ? duration(seconds) : ""] : [])])));
    return parts;
  }

  /** Show the results of a search; `null` hides them. */
  showResults(matches) {
    this.results.hidden = !matches;
    document.getElementById("count").textContent = matches ? `${matches.length.toLocaleString("en")} found` : "";
    const rows = (matches ?? []).slice(0, 200).map((operation) => {
      const row = element("button", "row", swatch(this.graph.device(operation)?.colour),
        element("span", "", operation.type), element("span", "name", operation.name));
      row.addEventListener("click", () => this.app.goTo(operation.box));
      return row;
    });
    this.results.replaceChildren(...rows);
  }
}
