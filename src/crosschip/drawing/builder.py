"""The graph of a picture: chains of operations, repeats, and summaries of stretches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from crosschip.drawing.condensation import (
    MOST_LINES,
    MOST_NAMES,
    first_lines,
    intervals,
    merge_ends,
)
from crosschip.drawing.graph import (
    Detail,
    Edge,
    Graph,
    Labels,
    Line,
    Node,
    Row,
    count_text,
)
from crosschip.drawing.repeats import MIN_SAVING, Item, Repeat, fold
from crosschip.ir.bodies import walk_operations
from crosschip.ir.control import ControlFlow
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.types import TensorType

_MOST_ROWS, _MOST_TYPES = 12, 5
"""The maximum numbers of operations and of operators in a box."""

_LONGEST_SHAPE = 20


def graph_of(model: Model, labels: Labels, detail: Detail) -> Graph:
    """Return the graph of a model."""
    return _Builder(model, labels, detail).build()


@dataclass(frozen=True, slots=True)
class _Read:
    """The reading of a value from outside of an item."""

    port: Operand | None
    operand: Operand
    reader: Operation | None


class _Builder:
    """The builder of a model's graph."""

    def __init__(self, model: Model, labels: Labels, detail: Detail) -> None:
        self._model, self._labels, self._detail = model, labels, detail
        self._most = detail.most
        self._in_segments = len(set(labels.segments.values())) > 1
        self._outputs = set(model.outputs.values())
        self._readers: dict[Operand, list[Operation]] = {}
        for operation in model.operations:
            for operand in operation.inputs:
                if operand is not None:
                    self._readers.setdefault(operand, []).append(operation)
        self._counterparts: dict[Operation, list[Operation]] = {}
        """The operations that the drawn one of a repeat stands for."""

    def build(self) -> Graph:
        items = fold(
            self._model.operations,
            self._labels.group,
            max(MIN_SAVING, self._most),
            shapes=self._detail.shapes,
        )
        self._add_counterparts(items, {o: [o] for o in self._model.operations})
        level = _Level(self)
        for name, operand in self._model.inputs.items():
            level.add_source(Node(heading=name, title=f"input {name}: {operand.type}"), operand)
        level.add_items(items)
        for name, operand in self._model.outputs.items():
            constant = " (constant)" if operand.is_constant else ""
            title = f"output {name}: {operand.type}{constant}"
            level.add_sink(Node(heading=f"{name}{constant}", title=title, is_sink=True), operand)
        return level.graph(merging=True)

    def _add_counterparts(
        self, items: Sequence[Item], stands_for: Mapping[Operation, Sequence[Operation]]
    ) -> None:
        for item in items:
            if isinstance(item, Operation):
                self._counterparts[item] = list(stands_for[item])
            else:
                within = {
                    first: [o for each in alike for o in stands_for[each]]
                    for first, *others in zip(*item.blocks, strict=True)
                    for alike in [[first, *others]]
                }
                self._add_counterparts(item.items, within)

    def transfers(self, operand: Operand, reader: Operation | None) -> bool:
        """Return whether a value is read by another group than that which outputs it."""
        producer = self._model.producers.get(operand)
        if producer is None or reader is None or not self._labels.segments:
            return False
        return self._labels.group(producer) != self._labels.group(reader)

    def merges(self, first: Operation, second: Operation) -> bool:
        """Return whether an operation follows another in one box."""
        values = [o for o in second.inputs if o is not None and not o.is_constant]
        return (
            set(values) == set(first.outputs)
            and len(first.outputs) == 1
            and first.outputs[0] not in self._outputs
            and all(reader is second for reader in self._readers[first.outputs[0]])
            and self._key(first) == self._key(second)
            and not first.bodies
            and not second.bodies
        )

    def bundles(
        self, leaving: Sequence[tuple[Operand, set[Operand]]]
    ) -> Iterable[Sequence[tuple[Operand, set[Operand]]]]:
        """Return what leaves a node together: each value, or values of a type, or all."""
        if len(leaving) > MOST_LINES:
            return [leaving]
        by_type: dict[str, list[tuple[Operand, set[Operand]]]] = {}
        for pair in leaving:
            key = self.type_text([pair[0]]) if self._most > 1 else str(len(by_type))
            by_type.setdefault(key, []).append(pair)
        return by_type.values()

    def line(self, bundle: Sequence[tuple[Operand, set[Operand]]]) -> Line:
        """Return the line of values that leave a node together."""
        operands = [operand for _, drawn in bundle for operand in drawn]
        types = Counter(self.type_text([operand]) for operand, _ in bundle)
        label = next(iter(types)) if len(types) == 1 else "values"
        if len(operands) > 1:
            label = f"{len(operands)} {'× ' if len(types) == 1 else ''}{label}"
        names = [f"{operand.name}: {operand.type}" for operand in operands]
        return Line(
            label, "\n".join(first_lines(names)), frozenset(operand for operand, _ in bundle)
        )

    def type_text(self, operands: Sequence[Operand]) -> str:
        """Return what the types of operands, and of those that they stand for, have in common."""
        types = []
        for operand in operands:
            producer = self._model.producers.get(operand)
            if producer is None:
                types.append(operand.type)
            else:
                index = producer.outputs.index(operand)
                alike = self._counterparts.get(producer, [producer])
                types += [other.outputs[index].type for other in alike]
        return _type_text(types) if types else ""

    def _key(self, operation: Operation) -> tuple[str, str]:
        return self._labels.group(operation), self._labels.segments.get(operation, "")

    def leaves(self, operation: Operation, block: frozenset[Operation]) -> Iterator[Operand]:
        """Yield the outputs of an operation that are read outside of its block."""
        for output in operation.outputs:
            readers = self._readers.get(output, ())
            if output in self._outputs or any(reader not in block for reader in readers):
                yield output

    def chains(self, items: Sequence[Item]) -> Iterator[Repeat | list[Operation]]:
        """Yield repeats, and operations in chains or in stretches to be summarized."""
        stretch: list[Operation] = []
        for item in items:
            if isinstance(item, Repeat):
                yield from self._parts(stretch)
                stretch = []
                yield item
            else:
                stretch.append(item)
        yield from self._parts(stretch)

    def _parts(self, stretch: Sequence[Operation]) -> Iterator[list[Operation]]:
        if self._most > 1:
            yield from intervals(stretch, self._most, self._readers, self._labels.group)
            return
        chain_of: dict[Operation, list[Operation]] = {}
        chains: list[list[Operation]] = []
        for operation in stretch:
            producers = (self._model.producers.get(o) for o in operation.inputs if o is not None)
            before = next((p for p in producers if p in chain_of), None)
            chain = chain_of.get(before) if before is not None else None
            if (
                chain is None
                or before is None
                or chain[-1] is not before
                or len(chain) >= _MOST_ROWS
                or not self.merges(before, operation)
            ):
                chain = []
                chains.append(chain)
            chain.append(operation)
            chain_of[operation] = chain
        yield from chains

    def box(self, operations: Sequence[Operation]) -> Node:
        if operations[0].bodies:
            return self._control(operations[0])
        if self._most > 1 and len(operations) > 2:
            return Node(self._counts(operations))
        rows = []
        shown = self.type_text(operations[-1].outputs[:1])
        for operation in operations:
            detail = self.type_text(operation.outputs[:1])
            rows.append(self._row([operation], operation.type, detail))
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            if row.detail == (shown if after is None else after.detail):
                row.detail = ""
        return Node(rows)

    def _counts(self, operations: Sequence[Operation]) -> list[Row]:
        """Return a row for each of the most frequent operators in each group, with counts."""
        by_type: dict[tuple[str, str], list[Operation]] = {}
        for operation in operations:
            by_type.setdefault((operation.type, self._labels.group(operation)), []).append(
                operation
            )
        ordered = sorted(by_type.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        shown = _MOST_TYPES if len(ordered) > _MOST_TYPES + 1 else len(ordered)
        rows = [self._row(each, type_, f"× {len(each)}") for (type_, _), each in ordered[:shown]]
        groups: dict[str, list[Operation]] = {}
        for (_, group), each in ordered[shown:]:
            groups.setdefault(group, []).extend(each)
        for each in groups.values():
            kinds = len({operation.type for operation in each})
            rows.append(self._row(each, f"{kinds} other operators", f"× {len(each)}"))
        return rows

    def _row(self, operations: Sequence[Operation], label: str, detail: str) -> Row:
        everything = [o for operation in operations for o in self._counterparts[operation]]
        segments = [self._labels.segments.get(o, "") for o in everything if self._in_segments]
        return Row(
            everything,
            label,
            detail,
            "\n".join(_title(everything, self._labels)),
            self._labels.group(operations[0]),
            _span_text(list(dict.fromkeys(s.rpartition(".")[2] for s in segments if s))),
        )

    def _control(self, operation: Operation) -> Node:
        assert isinstance(operation, ControlFlow), "operations with bodies are control flow"
        row = self._row([operation], operation.type, "")
        if not self._detail.depth:
            return Node([row, *self._body_rows(operation)])
        frames = []
        deeper = self._detail._replace(depth=self._detail.depth - 1)
        for role, body in zip(operation.roles, operation.bodies, strict=True):
            inner = _Builder(body, self._labels, deeper).build()
            frames.append(Graph(inner.nodes, inner.edges, role))
        return Node([row], frames=frames)

    def _body_rows(self, operation: ControlFlow) -> Iterator[Row]:
        """Yield a row for the operations of each group in each body."""
        for role, body in zip(operation.roles, operation.bodies, strict=True):
            groups: dict[str, list[Operation]] = {}
            for inner in walk_operations(body):
                groups.setdefault(self._labels.group(inner), []).append(inner)
            for inside in groups.values():
                self._counterparts.update((each, [each]) for each in inside)
                yield self._row(inside, role, count_text(len(inside), "operation"))

    def frame(self, repeat: Repeat) -> Node:
        """Return the frame of a repeat, with its first block."""
        blocks = repeat.blocks
        level = _Level(self)
        own = {output for operation in blocks[0] for output in operation.outputs}
        for operand in dict.fromkeys(read.operand for read in self.reads(blocks[0])):
            if operand not in own:
                level.add_source(Node(port=operand), operand)
        level.add_items(repeat.items)
        for operand in level.leaving(blocks):
            level.add_sink(Node(port=operand, is_sink=True), operand)
        count = len(blocks[0])
        if count == 1:
            return self._single(blocks)
        how = "in a chain" if repeat.chained else "in parallel"
        operators = Counter(operation.type for block in blocks for operation in block)
        title = ", ".join(f"{number} {type_}" for type_, number in operators.most_common())
        return Node(
            heading=f"× {len(blocks)} {how}, {count_text(count, 'operation')} each",
            title=f"{len(blocks)} blocks of {count} operations that are alike: {title}",
            frames=[level.graph(merging=False)],
        )

    def _single(self, blocks: Sequence[Sequence[Operation]]) -> Node:
        """Return a box for an operation that is repeated."""
        row = self._row(blocks[0], blocks[0][0].type, f"× {len(blocks)}")
        return Node([row])

    def reads(self, operations: Iterable[Operation]) -> Iterator[_Read]:
        for operation in operations:
            for operand in operation.inputs:
                if operand is not None and not operand.is_constant:
                    yield _Read(None, operand, operation)


class _Level:
    """A graph that is being built: the model's, or that of a block."""

    def __init__(self, builder: _Builder) -> None:
        self._builder = builder
        self._nodes: list[Node] = []
        self._edges: dict[tuple[Node, Operand, Node, Operand | None], bool] = {}
        self._owner: dict[Operand, tuple[Node, Operand]] = {}
        """The node of each value, and the value that it is drawn as."""
        self._drawn: dict[tuple[Node, Operand], set[Operand]] = {}

    def add_source(self, node: Node, operand: Operand) -> None:
        self._nodes.append(node)
        self._owner[operand] = node, operand

    def add_sink(self, node: Node, operand: Operand) -> None:
        self._nodes.append(node)
        self._connect(node, _Read(None, operand, None))

    def add_items(self, items: Sequence[Item]) -> None:
        pending = []
        for item in self._builder.chains(items):
            if isinstance(item, Repeat):
                node = self._builder.frame(item)
                representatives = {
                    output: first
                    for block in item.blocks
                    for one, other in zip(item.blocks[0], block, strict=True)
                    for first, output in zip(one.outputs, other.outputs, strict=True)
                }
                reads = list(_repeat_reads(item, representatives, ports=bool(node.frames)))
            else:
                node = self._builder.box(item)
                representatives = {
                    output: output for operation in item for output in operation.outputs
                }
                reads = [r for r in self._builder.reads(item) if r.operand not in representatives]
            self._nodes.append(node)
            self._owner.update((output, (node, first)) for output, first in representatives.items())
            pending.append((node, reads))
        for node, reads in pending:
            for read in reads:
                self._connect(node, read)

    def _connect(self, target: Node, read: _Read) -> None:
        owner = self._owner.get(read.operand)
        if owner is None:
            return
        source, operand = owner
        key = source, operand, target, read.port
        transfer = self._builder.transfers(read.operand, read.reader)
        self._edges[key] = self._edges.get(key, False) or transfer
        self._drawn.setdefault((source, operand), set()).add(read.operand)

    def leaving(self, blocks: Sequence[Sequence[Operation]]) -> list[Operand]:
        """Return the values of the first block whose counterparts are read outside of theirs."""
        leaving: dict[Operand, None] = {}
        for block in blocks:
            members = frozenset(block)
            for first, operation in zip(blocks[0], block, strict=True):
                for output in self._builder.leaves(operation, members):
                    leaving[first.outputs[operation.outputs.index(output)]] = None
        return [operand for operand in leaving if operand in self._owner]

    def graph(self, *, merging: bool) -> Graph:
        """Return the graph; with `merging`, several inputs of one reader are one node."""
        line_of: dict[tuple[Node, Operand], Line] = {}
        values: dict[Node, list[tuple[Operand, set[Operand]]]] = {}
        for (source, operand), drawn in self._drawn.items():
            values.setdefault(source, []).append((operand, drawn))
        for source, leaving in values.items():
            for bundle in self._builder.bundles(leaving):
                line = self._builder.line(bundle)
                source.lines.append(line)
                line_of.update(((source, operand), line) for operand, _ in bundle)
        edges: dict[tuple[Node, Line, Node, Operand | None], bool] = {}
        for (source, operand, target, port), transfer in self._edges.items():
            line = line_of[source, operand]
            key = source, line, target, port
            edges[key] = edges.get(key, False) or transfer
        drawn_edges = [Edge(*key, transfer) for key, transfer in edges.items()]
        if merging:
            return merge_ends(Graph(self._nodes, drawn_edges))
        return Graph(self._nodes, drawn_edges)


def _repeat_reads(
    repeat: Repeat, representatives: Mapping[Operand, Operand], *, ports: bool
) -> Iterator[_Read]:
    """Yield what the blocks of a repeat read from outside, at the ports of the first block."""
    for block in repeat.blocks:
        for first, operation in zip(repeat.blocks[0], block, strict=True):
            for port, operand in zip(first.inputs, operation.inputs, strict=True):
                if operand is None or operand.is_constant or operand in representatives:
                    continue
                yield _Read(port if ports else None, operand, operation)


def _type_text(types: Sequence[TensorType]) -> str:
    """Return what types have in common, in short: long names of sizes are cut."""
    first = types[0]
    if any(type_.shape is None for type_ in types) or len({len(t.shape or ()) for t in types}) > 1:
        sizes = ["*"]
    else:
        by_axis = zip(*(type_.shape or () for type_ in types), strict=True)
        sizes = [str(axis[0]) if len(set(axis)) == 1 else "…" for axis in by_axis]
    if len(", ".join(sizes)) > _LONGEST_SHAPE:
        sizes = [size if len(size) <= 4 else f"{size[:3]}…" for size in sizes]
    quantized = " quantized" if first.quantization else ""
    return f"{first.element_type}[{', '.join(sizes)}]{quantized}"


def _title(operations: Sequence[Operation], labels: Labels) -> Iterator[str]:
    """Yield the lines of a row's tooltip: names, types, segments and reasons."""
    names = []
    for operation in operations:
        types = ", ".join(str(output.type) for output in operation.outputs)
        where = labels.group(operation)
        segment = labels.segments.get(operation, "")
        where += f", segment {segment}" if segment else ""
        names.append(f"{operation.type} {operation.name}: {types}{f' ({where})' if where else ''}")
    yield from first_lines(names)
    notes = dict.fromkeys(labels.notes.get(operation, "") for operation in operations)
    yield from islice(filter(None, notes), MOST_NAMES)


def _span_text(numbers: Sequence[str]) -> str:
    """Return the numbers of segments in short."""
    return numbers[0] if len(numbers) == 1 else "…".join([*numbers[:1], *numbers[-1:]])
