// The picture on a canvas. What lies outside of the view or is too small to see is left out.

class Painter {
  constructor(canvas, graph, layout) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.graph = graph;
    this.layout = layout;
    this.readTheme();
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    this.theme = Object.fromEntries(
      ["page", "ink", "quiet", "line", "transfer", "block", "block-edge", "header", "pill", "accent", "hit"]
        .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.edges = this.graph.devices.map(({ colour }) => darker(colour));
  }

  /** Draw the picture: `view` has `x`, `y` and `scale`; `state` the selected box and device. */
  paint(view, state, ratio) {
    const { context, canvas } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.theme.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const scale = view.scale * ratio;
    context.setTransform(scale, 0, 0, scale, view.x * ratio, view.y * ratio);
    Object.assign(this, { scale: view.scale, state });
    context.textBaseline = "middle";
    const left = -view.x / view.scale, top = -view.y / view.scale;
    const window = {
      left, top, right: left + canvas.width / scale, bottom: top + canvas.height / scale,
    };
    this.#content(this.graph.root, window);
    this.#highlights(window);
  }

  /** Draw the lines and boxes in an open block, in the coordinates of its upper left corner. */
  #content(block, window) {
    const { context } = this;
    if (this.scale > 0.04) this.#lines(block);
    for (const box of block.children) {
      const width = box.open ? box.width : box.shownWidth;
      if (box.x > window.right || box.y > window.bottom
        || box.x + width < window.left || box.y + box.height < window.top) continue;
      if (box.open) this.#open(box, window);
      else if (box.isBlock) this.#closed(box);
      else if (box.kind === "operation") this.#operation(box);
      else this.#end(box);
    }
    context.globalAlpha = 1;
  }

  #open(box, window) {
    const { context, theme } = this;
    context.globalAlpha = 1;
    context.fillStyle = theme.block;
    roundRect(context, box.x, box.y, box.width, box.height, 6);
    context.fill();
    context.strokeStyle = theme["block-edge"];
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = theme.header;
    roundRect(context, box.x + 1, box.y + 1, box.width - 2, HEAD - 4, 5);
    context.fill();
    if (this.#fits(FONT)) {
      context.fillStyle = theme.ink;
      context.font = FONTS.bold;
      context.fillText(`▾ ${box.label}`, box.x + 8, box.y + HEAD / 2 - 1);
    }
    context.save();
    context.translate(box.x, box.y);
    this.#content(box, {
      left: window.left - box.x, right: window.right - box.x,
      top: window.top - box.y, bottom: window.bottom - box.y,
    });
    context.restore();
  }

  #closed(box) {
    const { context, theme } = this;
    const groups = [...box.devices];
    const only = groups.length === 1 ? groups[0][0] : null;
    const isDimmed = box !== this.state.selected && this.#isDimmed(box.hits, only);
    context.globalAlpha = isDimmed ? 0.25 : 1;
    const width = box.shownWidth;
    // Two edges behind it say that there is more inside.
    context.fillStyle = theme.block;
    context.strokeStyle = theme["block-edge"];
    context.lineWidth = 1;
    roundRect(context, box.x + 3, box.y + 3, width, box.height, 6);
    context.fill();
    context.stroke();
    const device = only === null ? null : this.graph.devices[only];
    context.fillStyle = device?.colour ?? theme.header;
    context.strokeStyle = device ? this.edges[only] : theme.line;
    roundRect(context, box.x, box.y, width, box.height, 6);
    context.fill();
    context.stroke();
    if (only === null) this.#shares(box, groups, width);
    else if (box.shown) this.#heat(box.shown, box.x + 6, box.y + box.height - 6, width - 12, 3);
    if (this.#fits(FONT)) {
      const onColour = device && !isDimmed;
      if (isDimmed) context.globalAlpha = 0.6;
      context.fillStyle = onColour ? "#111820" : theme.ink;
      context.font = FONTS.bold;
      context.fillText(`▸ ${box.label}`, box.x + 8, box.y + 13);
      context.font = FONTS.small;
      context.fillStyle = onColour ? "#38434f" : theme.quiet;
      context.fillText(box.detail, box.x + 20, box.y + 28);
      this.#right(box.time, box.x + width - 8, box.y + 28);
    }
    if (this.state.searching && box.hits && this.#fits(FONT)) this.#badge(box, width);
  }

  #shares(box, groups, width) {
    let x = box.x + 6;
    for (const [group, count] of groups) {
      const part = ((width - 12) * count) / box.count;
      this.context.fillStyle = this.graph.devices[group]?.colour ?? this.theme.pill;
      this.context.fillRect(x, box.y + box.height - 6, part, 4);
      x += part;
    }
  }

  /** Draw the share of a run's time as a bar. */
  #heat(seconds, x, y, width, height) {
    this.context.fillStyle = "rgb(0 0 0 / 12%)";
    this.context.fillRect(x, y, width, height);
    this.context.fillStyle = "rgb(0 0 0 / 62%)";
    this.context.fillRect(x, y, Math.min(width, (width * seconds) / this.graph.whole), height);
  }

  #badge(box, width) {
    const { context } = this;
    const text = String(box.hits);
    const size = this.layout.measure.width(text, FONTS.small) + 10;
    context.fillStyle = this.theme.hit;
    roundRect(context, box.x + width - size + 4, box.y - 6, size, 15, 7);
    context.fill();
    context.fillStyle = "#111820";
    context.font = FONTS.small;
    context.fillText(text, box.x + width - size + 9, box.y + 2);
  }

  #operation(box) {
    const { context, theme } = this;
    const { operation } = box;
    const device = this.graph.device(operation);
    const isDimmed = box !== this.state.selected && this.#isDimmed(operation.hit, operation.group);
    context.globalAlpha = isDimmed ? 0.22 : 1;
    context.fillStyle = device?.colour ?? theme.pill;
    context.fillRect(box.x, box.y, box.shownWidth, box.height);
    if (this.scale > 0.25) {
      context.strokeStyle = device ? this.edges[operation.group] : theme.line;
      context.lineWidth = 0.8;
      context.strokeRect(box.x, box.y, box.shownWidth, box.height);
    }
    const share = this.graph.whole ? operation.seconds / this.graph.whole : 0;
    if (share > 0.002) {
      context.fillStyle = "rgb(0 0 0 / 62%)";
      context.fillRect(box.x, box.y + box.height - 3, box.shownWidth * Math.min(share, 1), 2.4);
    }
    let x = box.x;
    const middle = box.y + box.height / 2 + 0.5;
    if (box.strip) {
      const width = box.strip.length * 7 + 8;
      context.fillStyle = device ? this.edges[operation.group] : theme.line;
      context.fillRect(x, box.y, width, box.height);
      if (this.#fits(SMALL)) {
        context.fillStyle = "#ffffff";
        context.font = FONTS.small;
        context.fillText(box.strip, x + 4, middle);
      }
      x += width - 2;
    }
    if (this.#fits(FONT)) {
      const onColour = device && !isDimmed;
      if (isDimmed) context.globalAlpha = 0.6;
      context.font = FONTS.row;
      context.fillStyle = onColour ? "#111820" : theme.ink;
      context.fillText(box.label, x + PAD - 2, middle);
      context.font = FONTS.small;
      context.fillStyle = onColour ? "#38434f" : theme.quiet;
      this.#right(box.detail, box.x + box.shownWidth - PAD + 2, middle);
    }
  }

  #right(text, x, y) {
    if (!text) return;
    this.context.textAlign = "right";
    this.context.fillText(text, x, y);
    this.context.textAlign = "left";
  }

  #end(box) {
    const { context, theme } = this;
    context.globalAlpha = this.state.searching ? 0.4 : 1;
    context.fillStyle = theme.pill;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    roundRect(context, box.x, box.y, box.shownWidth, box.height, box.height / 2);
    context.fill();
    context.stroke();
    if (!this.#fits(FONT)) return;
    context.textAlign = "center";
    const centre = box.x + box.shownWidth / 2;
    context.fillStyle = theme.ink;
    context.font = FONTS.bold;
    context.fillText(box.label, centre, box.y + 12);
    context.fillStyle = theme.quiet;
    context.font = FONTS.small;
    context.fillText(box.detail, centre, box.y + 25);
    context.textAlign = "left";
  }

  /** Whether text of a size is large enough to read. */
  #fits(size) {
    return this.scale * size >= 5;
  }

  #isDimmed(hit, group) {
    const { searching, device } = this.state;
    return (searching && !hit) || (device !== null && group !== null && group !== device);
  }

  /** Draw the lines of a block with two paths, which are made once for a layout. */
  #lines(block) {
    const { context, theme } = this;
    if (!block.paths) {
      block.paths = { line: new Path2D(), transfer: new Path2D() };
      for (const route of block.routes) {
        block.paths[route.transfer ? "transfer" : "line"].addPath(curve(route));
      }
    }
    context.globalAlpha = this.state.searching ? 0.4 : 1;
    context.strokeStyle = theme.line;
    context.lineWidth = Math.max(1.1, 0.4 / this.scale);
    context.stroke(block.paths.line);
    context.strokeStyle = theme.transfer;
    context.lineWidth = Math.max(2, 0.8 / this.scale);
    context.stroke(block.paths.transfer);
    context.globalAlpha = 1;
  }

  /** Draw the selected box and the lines of its values, at every level, over the picture. */
  #highlights() {
    const { context, theme } = this;
    const { selected } = this.state;
    if (!selected) return;
    const visible = shownBox(selected);
    const reads = new Set(selected.operation?.values ?? []);
    const outputs = new Set(selected.operation?.outputs ?? (selected.value ? [selected.value] : []));
    const draw = (block) => {
      context.save();
      context.translate(block.x, block.y);
      for (const route of block.routes) {
        const isInput = route.target instanceof Box && route.target.contains(selected)
          || !(route.target instanceof Box);
        const hit = [...route.values].some((v) => outputs.has(v) || (isInput && reads.has(v)));
        if (!hit) continue;
        context.strokeStyle = theme.accent;
        context.lineWidth = Math.max(2.6, 1.4 / this.scale);
        context.stroke(curve(route));
      }
      for (const child of block.children) if (child.open) draw(child);
      context.restore();
    };
    if (reads.size || outputs.size) draw(this.graph.root);
    const { x, y } = visible.position();
    const width = visible.open ? visible.width : visible.shownWidth;
    const line = Math.max(3, 2 / this.scale);
    context.strokeStyle = theme.accent;
    context.lineWidth = line;
    roundRect(context, x - line / 2, y - line / 2, width + line, visible.height + line, 4);
    context.stroke();
  }
}

/** The box itself, or the closed block that hides it. */
function shownBox(box) {
  let shown = box;
  for (let each = box.parent; each; each = each.parent) if (!each.open) shown = each;
  return shown;
}

function roundRect(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

/** The path of a line: straight where it is vertical or leads upwards, otherwise a soft curve. */
function curve({ points, target }) {
  const path = new Path2D();
  path.moveTo(...points[0]);
  for (let index = 1; index < points.length; index++) {
    const [x0, y0] = points[index - 1], [x1, y1] = points[index];
    const bend = (y1 - y0) / 2;
    if (Math.abs(x0 - x1) < 0.5 || y1 - y0 < 6) path.lineTo(x1, y1);
    else path.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }
  if (target instanceof Box) {
    const [x, y] = points.at(-1);
    path.moveTo(x - 3, y - 5);
    path.lineTo(x, y);
    path.lineTo(x + 3, y - 5);
  }
  return path;
}

function darker(colour) {
  const part = (at) => Math.round((parseInt(colour.slice(at, at + 2), 16) * 11) / 20);
  return `rgb(${part(1)} ${part(3)} ${part(5)})`;
}
