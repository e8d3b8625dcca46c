// The time line of a run: a track for the runtime and each device, with nested spans.

const TRACK_ROW = 17, TRACK_GAP = 6, AXIS = 18, LABELS = 110;

class Timeline {
  constructor(canvas, app) {
    Object.assign(this, { canvas, app, start: 0, hovered: null });
    this.run = app.graph.data.profile;
    this.end = this.run.shown;
    this.context = canvas.getContext("2d");
    this.tracks = [];
    this.#arrange();
    document.getElementById("run").hidden = false;
    const omitted = this.run.omitted ? `; ${this.run.omitted.toLocaleString("en")} short spans are left out` : "";
    this.title = `A run of ${duration(this.run.shown)} (mean of ${this.run.runs}: ${duration(this.run.seconds)})${omitted}`;
    document.getElementById("runTitle").textContent = this.title;
    canvas.setAttribute("aria-label", `${this.title}. ${this.#spoken()}`);
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.dragged = { x: event.offsetX, travelled: 0 };
    });
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("dblclick", () => this.#zoomTo(0, this.run.shown));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  #arrange() {
    const depth = new Map();
    for (const span of this.run.spans) {
      depth.set(span.track, Math.max(depth.get(span.track) ?? 0, span.depth + 1));
    }
    let top = AXIS;
    for (const [name, rows] of depth) {
      this.tracks.push({ name, top });
      top += Math.min(rows, 4) * TRACK_ROW + TRACK_GAP;
    }
    this.height = top;
    this.canvas.style.height = `${this.height}px`;
    this.top = new Map(this.tracks.map(({ name, top: y }) => [name, y]));
    this.spans = this.run.spans.filter((span) => span.depth < 4);
  }

  #spoken() {
    return this.run.segments.filter((each) => each.segment >= 0).slice(0, 20).map((each) =>
      `segment ${this.app.graph.data.segments[each.segment].number}: ${duration(each.seconds)}`).join("; ");
  }

  resize(ratio = window.devicePixelRatio || 1) {
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.draw();
  }

  draw() {
    this.pending ??= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    if (this.pending) cancelAnimationFrame(this.pending);
    this.pending = null;
    const { context, canvas, app } = this;
    const { theme } = app.painter;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.textBaseline = "middle";
    context.font = FONTS.small;
    this.#axis();
    context.fillStyle = theme.ink;
    for (const { name, top } of this.tracks) {
      context.fillText(app.layout.measure.cut(name, FONTS.small, LABELS - 12), 0, top + TRACK_ROW / 2);
    }
    context.save();
    context.beginPath();
    context.rect(LABELS, 0, this.width - LABELS, this.height);
    context.clip();
    for (const span of this.spans) this.#span(span);
    context.restore();
  }

  get width() {
    return this.canvas.width / this.ratio;
  }

  #x(seconds) {
    return LABELS + ((seconds - this.start) / (this.end - this.start)) * (this.width - LABELS);
  }

  #axis() {
    const { context } = this;
    const { theme } = this.app.painter;
    const length = this.end - this.start;
    const raw = length / Math.max(2, (this.width - LABELS) / 120);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw);
    context.fillStyle = theme.quiet;
    context.strokeStyle = theme.header;
    context.lineWidth = 1;
    for (let at = Math.ceil(this.start / step) * step; at < this.end; at += step) {
      const x = Math.round(this.#x(at)) + 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, this.height);
      context.stroke();
      if (x + 50 > this.width) continue;
      context.fillText(at ? `${+(at * 1e3).toPrecision(6)} ms` : "0", x + 3, 7);
    }
  }

  #span(span) {
    const { context, app } = this;
    const x = this.#x(span.start), width = this.#x(span.start + span.seconds) - x;
    if (x > this.width || x + width < LABELS) return;
    const y = this.top.get(span.track) + span.depth * TRACK_ROW;
    const device = app.graph.devices.find((each) => each.name === span.track);
    const isStep = span.kind === "step";
    context.fillStyle = device?.colour ?? app.painter.theme.header;
    context.globalAlpha = isStep && !span.reported ? 0.7 : 1;
    context.fillRect(x, y, Math.max(width, 0.7), TRACK_ROW - 2);
    context.globalAlpha = 1;
    if (width > 3) {
      context.strokeStyle = device ? darker(device.colour) : app.painter.theme.line;
      context.lineWidth = this.#isSelected(span) ? 2.4 : 0.7;
      context.strokeRect(x + 0.5, y + 0.5, width - 1, TRACK_ROW - 3);
    }
    if (width > 26) {
      const left = Math.max(x, LABELS);
      context.fillStyle = device ? "#111820" : app.painter.theme.ink;
      const text = app.layout.measure.cut(this.#label(span), FONTS.small, x + width - left - 8);
      if (text.length > 1) context.fillText(text, left + 4, y + TRACK_ROW / 2 - 1);
    }
  }

  #isSelected(span) {
    const operation = this.app.state.selected?.operation;
    return operation && span.operations.includes(operation.index);
  }

  #label(span) {
    const types = [...new Set(span.operations.map((index) => this.app.graph.operations[index].type))];
    if (types.length) return types.join("+");
    if (span.segment >= 0) return `segment ${this.app.graph.data.segments[span.segment].number}`;
    return span.name || span.kind;
  }

  spanAt(x, y) {
    const hits = this.spans.filter((span) => {
      const top = this.top.get(span.track) + span.depth * TRACK_ROW;
      const left = this.#x(span.start), right = Math.max(this.#x(span.start + span.seconds), left + 2);
      return y >= top && y < top + TRACK_ROW && x >= left - 1 && x <= right;
    });
    return hits.at(-1) ?? null;
  }

  #zoomTo(start, end) {
    const length = Math.min(Math.max(end - start, this.run.shown * 1e-5), this.run.shown);
    this.start = Math.min(Math.max(start, 0), this.run.shown - length);
    this.end = this.start + length;
    this.draw();
  }

  #wheel(event) {
    event.preventDefault();
    const part = Math.max(0, (event.offsetX - LABELS) / (this.width - LABELS));
    const factor = Math.exp(event.deltaY * 0.0015), length = this.end - this.start;
    const centre = this.start + part * length;
    this.#zoomTo(centre - part * length * factor, centre + (1 - part) * length * factor);
  }

  #move(event) {
    if (this.dragged) {
      const by = event.offsetX - this.dragged.x;
      this.dragged.travelled += Math.abs(by);
      this.dragged.x = event.offsetX;
      const seconds = (by / (this.width - LABELS)) * (this.end - this.start);
      this.#zoomTo(this.start - seconds, this.end - seconds);
      return;
    }
    const span = this.spanAt(event.offsetX, event.offsetY);
    const names = span?.operations.map((index) => this.app.graph.operations[index].name) ?? [];
    this.canvas.title = span ? [`${this.#label(span)}: ${duration(span.seconds)}`, span.name,
      ...names.slice(0, 5), ...(span.reported ? [] : ["the engine does not report its start"])].join("\n") : "";
    this.canvas.style.cursor = span ? "pointer" : "";
  }

  #up(event) {
    const isClick = this.dragged && this.dragged.travelled <= 3;
    this.dragged = null;
    const span = isClick ? this.spanAt(event.offsetX, event.offsetY) : null;
    const { graph } = this.app;
    if (!span) return;
    if (span.operations.length) {
      this.app.goTo(graph.operations[span.operations[0]].box);
    } else if (span.segment >= 0) {
      const first = graph.operations.find((operation) => operation.segment === span.segment);
      if (first) this.app.goTo(first.box.parent === graph.root ? first.box : first.box.parent);
    }
  }

  #key(event) {
    const length = this.end - this.start;
    const moves = {
      ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.2, -0.2], "-": [-0.25, 0.25],
      Home: [-Infinity, -Infinity],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Home") this.#zoomTo(0, this.run.shown);
    else this.#zoomTo(this.start + move[0] * length, this.end + move[1] * length);
  }
}
