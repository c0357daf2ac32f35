import '@xyflow/react/dist/style.css'
import {
  Background,
  BackgroundVariant,
  Controls,
  type Edge,
  Handle,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from '@xyflow/react'
import { useMemo } from 'react'
import { useFitView } from '../../components/graph-fit.ts'
import { Chip } from '../../components/state-label.tsx'
import { type RunNode, runTone } from './run-node.tsx'

const SIZE = { width: 190, height: 84, gapX: 70, gapY: 26 }
const FIT = { maxZoom: 1, padding: 0.12 }

type StepNode = Node<{ node: RunNode; link: string }, 'step'>
const NODE_TYPES = { step: StepCard }

/** Dependencies run from left to right. */
export function RunGraph({ nodes, linkTo }: { nodes: readonly RunNode[]; linkTo: (name: string) => string }) {
  const shape = nodes.map(({ name, depends_on }) => `${name}<${depends_on.join()}`).join(';')
  const places = useMemo(() => layers(nodes), [shape])
  const shown = nodes.map(
    (node): StepNode => ({
      id: node.name,
      type: 'step',
      position: places.get(node.name)!,
      data: { node, link: linkTo(node.name) },
      width: SIZE.width,
      height: SIZE.height,
      draggable: false,
      connectable: false,
      ariaLabel: `${node.name}, ${node.state}`,
    }),
  )
  const edges = nodes.flatMap(({ name, depends_on, state }) =>
    depends_on
      .filter((other) => places.has(other))
      .map(
        (other): Edge => ({
          id: `${other}>${name}`,
          source: other,
          target: name,
          animated: state === 'running',
          focusable: false,
        }),
      ),
  )
  return (
    <ReactFlow
      nodes={shown}
      edges={edges}
      nodeTypes={NODE_TYPES}
      {...useFitView(FIT, shape)}
      minZoom={0.05}
      onlyRenderVisibleElements
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      proOptions={{ hideAttribution: true }}
      aria-label="The run as a graph"
    >
      <Background variant={BackgroundVariant.Dots} gap={22} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
}

function StepCard({ data: { node, link } }: NodeProps<StepNode>) {
  return (
    <div className="card step" data-tone={runTone(node.state)} data-asks={node.state === 'asking'}>
      <Handle type="target" position={Position.Left} />
      <a className="card-link" href={link}>
        <span className="card-head">
          <b>{node.name}</b>
          <Chip word={node.state} tone={runTone(node.state)} />
        </span>
        <span className="card-task">{node.step ?? node.reason ?? node.summary ?? ' '}</span>
      </a>
      <Handle type="source" position={Position.Right} />
    </div>
  )
}

function layers(nodes: readonly RunNode[]): Map<string, { x: number; y: number }> {
  const needs = new Map(nodes.map(({ name, depends_on }) => [name, depends_on]))
  const depths = new Map<string, number>()
  const depthOf = (name: string): number => {
    const known = depths.get(name)
    if (known !== undefined) return known
    // Plans have no cycles; this ends the recursion even if one did.
    depths.set(name, 0)
    const depth = Math.max(-1, ...(needs.get(name) ?? []).filter((one) => needs.has(one)).map(depthOf)) + 1
    depths.set(name, depth)
    return depth
  }
  const columns = new Map<number, string[]>()
  for (const { name } of nodes) columns.set(depthOf(name), [...(columns.get(depthOf(name)) ?? []), name])
  const places = new Map<string, { x: number; y: number }>()
  for (const [depth, names] of columns) {
    for (const [index, name] of names.entries()) {
      places.set(name, {
        x: depth * (SIZE.width + SIZE.gapX),
        y: (index - (names.length - 1) / 2) * (SIZE.height + SIZE.gapY),
      })
    }
  }
  return places
}
