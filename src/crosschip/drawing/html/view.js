// Moving, zooming and selecting on the canvas, with pointer and keyboard.

const LEAST_SCALE = 0.01, MOST_SCALE = 4;

class View {
  /** `app` has `graph`, `painter`, `state`, `select(box)`, `toggle(box)` and `describe(box)`. */
  constructor(canvas, app) {
    Object.assign(this, { canvas, app, x: 0, y: 0, scale: 1, pointers: new Map(), ratio: 1 });
    this.frames = []; // the milliseconds of the last frames
    this.isFitted = true;
    this.tip = document.getElementById("tip");
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.#up(event));
    }
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  resize(ratio = window.devicePixelRatio || 1) {
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.isFitted) this.fit();
    this.draw();
  }

  /** Paint in the next frame. */
  draw() {
    this.pending ??= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    if (this.pending) cancelAnimationFrame(this.pending);
    this.pending = null;
    const start = performance.now();
    this.app.painter.paint(this, this.app.state, this.ratio);
    this.frames.push(performance.now() - start);
    if (this.frames.length > 200) this.frames.shift();
  }

  get width() {
    return this.canvas.width / this.ratio;
  }

  get height() {
    return this.canvas.height / this.ratio;
  }

  /** Show the whole graph, not larger than it is. */
  fit() {
    const { root } = this.app.graph;
    const margin = 24;
    const scale = Math.min(
      (this.width - margin) / root.width, (this.height - 2 * margin) / root.height, 1.25);
    this.scale = Math.max(scale, LEAST_SCALE);
    this.x = (this.width - root.width * this.scale) / 2;
    this.y = Math.max((this.height - root.height * this.scale) / 2 - 8, 8);
    this.isFitted = true;
    this.changed();
  }

  /** Move a box to the middle if it is not in view, at a scale at which it can be read. */
  show(box, least = 0.6) {
    const shown = shownBox(box);
    const { x, y } = shown.position();
    const width = shown.open ? shown.width : shown.shownWidth;
    const scale = Math.max(this.scale, Math.min(least, this.width / (width + 40)));
    const centre = [x + width / 2, y + Math.min(shown.height, this.height / scale) / 2];
    const at = [centre[0] * this.scale + this.x, centre[1] * this.scale + this.y];
    const inside = at[0] > 40 && at[0] < this.width - 40 && at[1] > 40 && at[1] < this.height - 40;
    if (!inside || scale !== this.scale) {
      this.scale = scale;
      this.x = this.width / 2 - centre[0] * scale;
      this.y = this.height / 2 - centre[1] * scale;
      this.isFitted = false;
    }
    this.changed();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.isFitted = false;
    this.changed();
  }

  move(x, y) {
    this.x += x;
    this.y += y;
    this.isFitted = false;
    this.changed();
  }

  changed() {
    this.draw();
    this.app.viewChanged();
  }

  /** Keep a box where it is on the screen while the layout changes. */
  anchored(box, change) {
    const before = shownBox(box).position();
    change();
    const after = shownBox(box).position();
    if (this.isFitted) return this.fit();
    return this.move((before.x - after.x) * this.scale, (before.y - after.y) * this.scale);
  }

  /** The innermost box at a point of the canvas; `null` for none. */
  boxAt(x, y) {
    let point = [(x - this.x) / this.scale, (y - this.y) / this.scale];
    let block = this.app.graph.root;
    for (;;) {
      const [left, top] = point;
      const inside = block.children.find((box) => left >= box.x && top >= box.y
        && left <= box.x + (box.open ? box.width : box.shownWidth) && top <= box.y + box.height);
      if (!inside) return block === this.app.graph.root ? null : block;
      if (!inside.open) return inside;
      point = [left - inside.x, top - inside.y];
      block = inside;
    }
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
  }

  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.travelled = this.pointers.size > 1 ? Infinity : 0;
  }

  #move(event) {
    const before = this.pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!before) return this.#hover(...now);
    this.travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const size = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      this.zoom(size(now) / Math.max(size(before), 1), ...other);
    } else if (this.travelled > 3) {
      this.move(now[0] - before[0], now[1] - before[1]);
    }
    this.pointers.set(event.pointerId, now);
    return undefined;
  }

  #up(event) {
    const isClick = this.pointers.delete(event.pointerId) && this.travelled <= 3;
    if (isClick && event.type === "pointerup") {
      const box = this.boxAt(event.offsetX, event.offsetY);
      this.app.select(box);
      const inHead = box?.open && (event.offsetY - this.y) / this.scale < box.position().y + HEAD;
      if (box?.isBlock && (!box.open || inHead)) this.app.toggle(box);
    }
  }

  #hover(x, y) {
    const box = this.boxAt(x, y);
    const isButton = box && !(box.open && (y - this.y) / this.scale > box.position().y + HEAD);
    this.canvas.style.cursor = isButton ? "pointer" : "";
    this.tip.hidden = !isButton;
    if (!isButton) return;
    this.tip.textContent = this.app.describe(box);
    const right = x + 16 + this.tip.offsetWidth > this.width;
    this.tip.style.left = `${right ? Math.max(4, x - this.tip.offsetWidth - 12) : x + 16}px`;
    this.tip.style.top = `${Math.min(y + 14, this.height - this.tip.offsetHeight - 4)}px`;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { app } = this;
    const actions = {
      ArrowUp: () => this.#step(-1, true), ArrowDown: () => this.#step(1, true),
      ArrowLeft: () => this.#step(-1, false), ArrowRight: () => this.#step(1, false),
      Enter: () => app.state.selected && app.toggle(app.state.selected),
      " ": () => app.state.selected && app.toggle(app.state.selected),
      Backspace: () => app.state.selected?.parent?.parent && app.select(app.state.selected.parent),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** Select the nearest shown box above or below, or beside; inside of a block that is open. */
  #step(direction, vertical) {
    const { root } = this.app.graph;
    const from = this.app.state.selected ? shownBox(this.app.state.selected) : null;
    if (!from) return this.app.select(root.children[0], true);
    const anchor = (box) => {
      const { x, y } = box.position();
      return [x + (box.open ? box.width : box.shownWidth) / 2, y + (box.open ? 0 : box.height / 2)];
    };
    const [x, y] = anchor(from);
    let best = null;
    const consider = (box) => {
      if (box !== from && box !== root) {
        const [dx, dy] = anchor(box).map((value, axis) => value - [x, y][axis]);
        const along = (vertical ? dy : dx) * direction, across = Math.abs(vertical ? dx : dy);
        const cost = along + 2 * across;
        if (along > 1 && (!best || cost < best.cost)) best = { box, cost };
      }
      if (box.open) box.children.forEach(consider);
    };
    consider(root);
    if (best) this.app.select(best.box, true);
    return undefined;
  }
}
