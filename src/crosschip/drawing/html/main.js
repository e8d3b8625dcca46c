// The page: its state, which the address after `#` holds, and what connects the parts.

const MOST_SHOWN = 60; // a graph with more boxes starts with its blocks closed

class App {
  constructor(data) {
    this.graph = new Graph(data);
    this.state = { selected: null, searching: false, device: null };
    const canvas = document.getElementById("graph");
    this.layout = new Layout(this.graph, this.#aspect(canvas));
    this.painter = new Painter(canvas, this.graph, this.layout);
    this.panel = new Panel(this);
    document.getElementById("title").textContent = data.model;
    this.#addLegend();
    if (data.profile) this.timeline = new Timeline(document.getElementById("timeline"), this);
    this.graph.openInitially(MOST_SHOWN);
    this.initial = this.#openIds();
    this.view = new View(canvas, this);
    this.find = document.getElementById("find");
    this.#listen();
    this.#readAddress();
  }

  #aspect(canvas) {
    return Math.min(3, Math.max(0.6, canvas.clientWidth / Math.max(canvas.clientHeight, 1))) || 1.4;
  }

  #addLegend() {
    const legend = document.getElementById("legend");
    this.graph.devices.forEach((device, index) => {
      const button = element("button", "device", swatch(device.colour), device.name);
      button.title = `Show the operations on ${device.name} alone`;
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        this.state.device = this.state.device === index ? null : index;
        [...legend.children].forEach((each, at) =>
          each.setAttribute("aria-pressed", String(at === this.state.device)));
        this.view.draw();
      });
      legend.append(button);
    });
  }

  #listen() {
    const click = (id, action) => document.getElementById(id).addEventListener("click", action);
    click("fit", () => this.view.fit());
    click("in", () => this.view.zoom(1.4));
    click("out", () => this.view.zoom(1 / 1.4));
    click("expand", () => this.openAll(true));
    click("collapse", () => this.openAll(false));
    this.find.addEventListener("input", () => this.search(this.find.value));
    this.find.addEventListener("keydown", (event) => {
      if (event.key === "Enter") document.querySelector("#results .row")?.click();
      if (event.key === "ArrowDown") document.querySelector("#results .row")?.focus();
    });
    document.getElementById("results").addEventListener("keydown", (event) => {
      const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (!next) return;
      event.preventDefault();
      (document.activeElement[next] ?? this.find).focus();
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    window.addEventListener("hashchange", () => this.#readAddress());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#repaint());
    window.addEventListener("beforeprint", () => this.#print(true));
    window.addEventListener("afterprint", () => this.#print(false));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      this.find.value = "";
      this.search("");
      this.select(null);
      return;
    }
    if (event.target.tagName === "INPUT") return;
    const actions = {
      "/": () => this.find.focus(), f: () => this.view.fit(), 0: () => this.view.fit(),
      "+": () => this.view.zoom(1.4), "=": () => this.view.zoom(1.4), "-": () => this.view.zoom(1 / 1.4),
      e: () => this.openAll(true), c: () => this.openAll(false),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  #repaint() {
    this.painter.readTheme();
    this.view.draw();
    this.timeline?.draw();
  }

  /** Paint sharply for paper, the whole graph, in the colours of light screens. */
  #print(starts) {
    const root = document.documentElement.style;
    root.colorScheme = starts ? "light" : "";
    this.painter.readTheme();
    if (starts) {
      this.before = { x: this.view.x, y: this.view.y, scale: this.view.scale, isFitted: this.view.isFitted };
      this.view.resize(3);
      this.view.fit();
    } else {
      Object.assign(this.view, this.before);
      this.view.resize();
    }
    this.view.drawNow();
    this.timeline?.drawNow();
  }

  /** Change what is open, lay it out, and keep a box where it is. */
  #change(box, change) {
    this.view.anchored(box, () => {
      change();
      this.layout.update();
    });
    this.#writeAddress();
  }

  toggle(box) {
    if (!box.isBlock) return;
    this.#change(box, () => this.graph.toggle(box));
    if (this.state.selected === box) this.panel.show(box);
  }

  openAll(open) {
    for (const box of this.graph.boxes.values()) {
      if (box !== this.graph.root) this.graph.toggle(box, open);
    }
    this.layout.update();
    this.view.fit();
    this.#writeAddress();
  }

  select(box, show = false) {
    this.state.selected = box;
    this.panel.show(box);
    document.getElementById("status").textContent = box ? this.describe(box) : "";
    if (show && box) this.view.show(box);
    this.view.draw();
    this.timeline?.draw();
    this.#writeAddress();
  }

  /** Select a box, open the blocks around it, and move it into view. */
  goTo(box) {
    this.graph.reveal(box);
    this.layout.update();
    this.select(box, true);
  }

  search(text) {
    const matches = text.trim() ? this.graph.search(text) : null;
    this.state.searching = Boolean(matches);
    this.graph.setHits(matches);
    this.panel.showResults(matches);
    this.view.draw();
    this.#writeAddress();
  }

  /** What a box is, in a few lines. */
  describe(box) {
    const { operation } = box;
    if (box.value) return `${box.kind} ${box.title}\n${box.value.type}`;
    if (!operation) return `${box.title}\n${plural(box.count, "operation")}`;
    const device = this.graph.device(operation)?.name ?? "no device";
    const declined = operation.verdicts.filter((v) => !v.runs).map((v) => `${v.device}: ${v.text}`);
    const time = operation.seconds ? [duration(operation.seconds)] : [];
    return [`${operation.type} on ${device}`, operation.name, ...time,
      ...operation.outputs.slice(0, 2).map((value) => value.type), ...declined.slice(0, 3)].join("\n");
  }

  viewChanged() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.#writeAddress(), 300);
  }

  #openIds() {
    return [...this.graph.boxes.values()].filter((box) => box.open && box.parent).map((box) => box.id).join(",");
  }

  #writeAddress() {
    if (!this.view || this.reading) return;
    const fields = [];
    const add = (name, value) => value && fields.push(`${name}=${encodeURIComponent(value)}`);
    add("select", this.state.selected?.id);
    add("find", this.find.value);
    const open = this.#openIds();
    const everything = [...this.graph.boxes.values()].every((box) => box.open || !box.isBlock);
    if (open !== this.initial) add("open", everything ? "all" : open || "none");
    const { x, y, scale, isFitted } = this.view;
    if (!isFitted) add("view", [x.toFixed(1), y.toFixed(1), scale.toPrecision(4)].join(","));
    const address = fields.length ? `#${fields.join("&")}` : " ";
    if (address.trim() !== location.hash) history.replaceState(null, "", address.trim() || "#");
  }

  /** Set the state that the address has after `#`. */
  #readAddress() {
    this.reading = true;
    const fields = Object.fromEntries(location.hash.slice(1).split("&").filter(Boolean).map((field) => {
      const [name, ...rest] = field.split("=");
      try {
        return [name, decodeURIComponent(rest.join("="))];
      } catch {
        return [name, ""];
      }
    }));
    const open = new Set((fields.open ?? this.initial).split(","));
    for (const box of this.graph.boxes.values()) {
      if (box.parent) this.graph.toggle(box, fields.open === "all" || open.has(box.id));
    }
    const selected = this.graph.boxes.get(fields.select) ?? null;
    if (selected && fields.open === undefined) this.graph.reveal(selected);
    this.layout.update();
    this.find.value = fields.find ?? "";
    this.search(this.find.value);
    this.view.resize();
    const view = (fields.view ?? "").split(",").map(Number);
    if (view.length === 3 && view.every(Number.isFinite) && view[2] > 0) {
      Object.assign(this.view, { x: view[0], y: view[1], isFitted: false });
      this.view.scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, view[2]));
    } else {
      this.view.fit();
    }
    this.select(selected, Boolean(selected) && fields.view === undefined);
    this.reading = false;
    this.view.draw();
  }
}

window.crosschip = new App(JSON.parse(document.getElementById("data").textContent));
