// Opens all blocks of a page, and returns what is wrong with the picture: operations that are not
// shown, boxes that overlap or leave their block, values without a line, lines through boxes.
(() => {
  const { graph } = crosschip;
  crosschip.openAll(true);
  const problems = [];
  const size = (box) => [box.open ? box.width : box.shownWidth, box.height];
  const overlap = (a, b) => a.x < b.x + size(b)[0] - 0.1 && b.x < a.x + size(a)[0] - 0.1
    && a.y < b.y + size(b)[1] - 0.1 && b.y < a.y + size(a)[1] - 0.1;
  for (const operation of graph.operations) {
    if (shownBox(operation.box) !== operation.box) problems.push(`hidden: ${operation.name}`);
  }
  const childIn = (block, box) => {
    let inner = box;
    while (inner && inner.parent !== block) inner = inner.parent;
    return inner;
  };
  const stacked = (a, b) => a.x === b.x && Math.abs(a.y + a.height - b.y) < 0.1;
  const walk = (block) => {
    block.children.forEach((box, index) => {
      const [width, height] = size(box);
      if (!(width > 0 && height > 0)) problems.push(`no size: ${box.id}`);
      if (box.x < 0 || box.y < 0 || box.x + width > block.width + 0.1
        || box.y + height > block.height + 0.1) problems.push(`outside: ${box.id} of ${block.id}`);
      for (const other of block.children.slice(index + 1)) {
        if (overlap(box, other)) problems.push(`overlap: ${box.id} and ${other.id}`);
      }
      if (box.open) walk(box);
    });
    for (const { points, source, target } of block.routes) {
      for (let index = 1; index < points.length; index++) {
        const [x0, y0] = points[index - 1], [x1, y1] = points[index];
        const isAfterLevel = index > 1 && points[index - 2][1] === y0 && points[index - 2][0] !== x0;
        if ((y1 < y0 || isAfterLevel) && Math.abs(x0 - x1) > 0.5) {
          problems.push(`aslant: ${source.id} to ${target.id}`);
        }
        if (Math.abs(x0 - x1) > 0.5) continue;
        for (const box of block.children) {
          const [width, height] = size(box);
          const inside = x0 > box.x + 0.5 && x0 < box.x + width - 0.5
            && Math.min(y0, y1) < box.y + height - 0.5 && Math.max(y0, y1) > box.y + 0.5;
          if (inside && box !== source && box !== target) {
            problems.push(`line ${source.id} to ${target.id} through ${box.id}`);
          }
        }
      }
    }
  };
  walk(graph.root);
  for (const value of graph.values) {
    const origin = value.producer?.box ?? value.home;
    for (const reader of origin ? value.readers : []) {
      for (let block = reader.box.parent; block; block = block.parent) {
        const target = childIn(block, reader.box);
        const source = block.contains(origin) ? childIn(block, origin) : null;
        if (source === target) break;
        const drawn = block.routes.some((route) => route.values.has(value)
          && route.target === target && (source ? route.source === source : !(route.source instanceof Box)));
        if (!drawn && !(source && stacked(source, target))) {
          problems.push(`no line for ${value.name} in ${block.id} to ${target.id}`);
        }
        if (source) break;
      }
    }
  }
  return problems;
})()
