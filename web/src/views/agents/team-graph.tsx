import '@xyflow/react/dist/style.css'
import {
  Background,
  BackgroundVariant,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from '@xyflow/react'
import { memo, useCallback, useEffect, useMemo, useState } from 'react'
import { formatCost } from '../../components/format.ts'
import { useFitView } from '../../components/graph-fit.ts'
import { Icon } from '../../components/icon.tsx'
import { ContextUsage, programOf, StateLabel, toneOf } from '../../components/state-label.tsx'
import { useNewEntries } from '../../data/queries.ts'
import type { AuditEntry } from '../../data/query-table.ts'
import { linkTo } from '../../route.ts'
import type { GraphPart } from './graph-members.ts'
import type { Member } from './team-view.tsx'
import { layOutTree } from './tree-layout.ts'

const SIZE = { width: 232, height: 104, gapX: 28, gapY: 72 }
/** How long the arrow of a message stays. */
const ARROW_MS = 4000
/** More arrows at once are unreadable. */
const MAX_ARROWS = 24
const MAX_ANIMATED = 8
const FIT = { maxZoom: 1.1, padding: 0.15 }
const ARROW = { type: MarkerType.ArrowClosed, color: 'var(--accent)', width: 14, height: 14 }

type MemberNode = Node<{ member: Member; below: number }, 'member'>
const NODE_TYPES = { member: memo(MemberCard, hasSameMember) }

export function TeamGraph({ drawn: members, below }: GraphPart<Member>) {
  const shape = members.map(({ name, parent = '' }) => `${name}<${parent}`).join(';')
  const places = useMemo(() => layOutTree(members, SIZE), [shape])
  const talks = useRecentMessages()
  const nodes = useMemo(
    () =>
      members.map(
        (member): MemberNode => ({
          id: member.name,
          type: 'member',
          position: places.get(member.name)!,
          data: { member, below: below.get(member.name) ?? 0 },
          width: SIZE.width,
          height: SIZE.height,
          draggable: false,
          connectable: false,
          ariaLabel: `${member.name}, ${member.session}`,
        }),
      ),
    [members, below, places],
  )
  const tree = useMemo(
    () =>
      members
        .filter(({ parent }) => parent !== undefined && places.has(parent))
        .map(
          ({ name, parent }): Edge => ({
            id: `${parent}>${name}`,
            source: parent!,
            target: name,
            type: 'smoothstep',
            sourceHandle: 'bottom-out',
            targetHandle: 'top-in',
            focusable: false,
          }),
        ),
    [shape],
  )
  const edges = useMemo(() => {
    const heard = [...talks]
      .filter(([key]) => key.split('>').every((name) => places.has(name)))
      .slice(-MAX_ARROWS)
    return [
      ...tree,
      ...heard.map(([key, count]): Edge => {
        const [source, target] = key.split('>') as [string, string]
        return {
          id: `talk:${key}`,
          source,
          target,
          ...sidesOf(places.get(source)!.y, places.get(target)!.y),
          animated: heard.length <= MAX_ANIMATED,
          className: 'talk',
          markerEnd: ARROW,
          zIndex: 2,
          focusable: false,
          ...(count > 1 ? { label: `${count} messages` } : {}),
        }
      }),
    ]
  }, [tree, talks, places])
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      {...useFitView(FIT, shape)}
      minZoom={0.1}
      maxZoom={1.6}
      onlyRenderVisibleElements
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      proOptions={{ hideAttribution: true }}
      aria-label="The team as a graph"
    >
      <Background variant={BackgroundVariant.Dots} gap={22} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
}

/** Picks the sides of the two cards so that the arrow crosses no card. */
function sidesOf(from: number, until: number) {
  if (from === until) {
    const below = { type: 'smoothstep', pathOptions: { offset: 24, borderRadius: 12 } }
    return { ...below, sourceHandle: 'bottom-out', targetHandle: 'bottom-in' }
  }
  return from < until
    ? { sourceHandle: 'bottom-out', targetHandle: 'top-in' }
    : { sourceHandle: 'top-out', targetHandle: 'bottom-in' }
}

function MemberCard({ data: { member, below } }: NodeProps<MemberNode>) {
  const state = member.asks ? 'waiting_input' : member.session
  return (
    <div className="card" data-tone={toneOf(state)} data-asks={member.asks}>
      <Handle id="top-in" type="target" position={Position.Top} />
      <Handle id="top-out" type="source" position={Position.Top} />
      <a className="card-link" href={linkTo('agents', member.name)}>
        <span className="card-head">
          <b>{member.name}</b>
          <StateLabel state={state} />
        </span>
        <span className="card-task">{member.current_task ?? member.role ?? ' '}</span>
      </a>
      <span className="card-foot">
        {member.waiting > 0 ? (
          <span>
            <Icon name="mail" />
            {member.waiting}
            <span className="sr"> messages waiting</span>
          </span>
        ) : null}
        {member.unclear > 0 ? <span className="unclear">{member.unclear} uncertain</span> : null}
        <ContextUsage context={member.context} />
        {member.spent === undefined ? null : <span>{formatCost(member.spent)}</span>}
        {below === 0 ? (
          <span className="card-program" title={programOf(member)}>
            {programOf(member)}
          </span>
        ) : (
          <a className="card-below" href={linkTo('team', undefined, { as: 'graph', root: member.name })}>
            + {below} below
          </a>
        )}
      </span>
      <Handle id="bottom-in" type="target" position={Position.Bottom} />
      <Handle id="bottom-out" type="source" position={Position.Bottom} />
    </div>
  )
}

/** The team is refetched twice a second, and most members stay the same. */
function hasSameMember(before: NodeProps<MemberNode>, after: NodeProps<MemberNode>): boolean {
  return JSON.stringify(before.data) === JSON.stringify(after.data)
}

/** The messages of the last few seconds: how many from whom to whom. */
function useRecentMessages(): ReadonlyMap<string, number> {
  const [talks, setTalks] = useState<ReadonlyMap<string, number>>(new Map())
  const [ends] = useState(() => new Set<ReturnType<typeof setTimeout>>())
  useEffect(
    () => () => {
      for (const end of ends) clearTimeout(end)
    },
    [ends],
  )
  useNewEntries(
    useCallback(
      (entries: readonly AuditEntry[]) => {
        const heard = entries
          .filter(({ type, subject }) => type === 'message.accepted' && subject !== undefined)
          .map(({ actor, subject }) => `${actor}>${subject}`)
        if (heard.length === 0) return
        setTalks((now) => change(now, heard, 1))
        const end = setTimeout(() => {
          ends.delete(end)
          setTalks((now) => change(now, heard, -1))
        }, ARROW_MS)
        ends.add(end)
      },
      [ends],
    ),
  )
  return talks
}

function change(talks: ReadonlyMap<string, number>, keys: readonly string[], by: number) {
  const next = new Map(talks)
  for (const key of keys) {
    const count = (next.get(key) ?? 0) + by
    if (count > 0) next.set(key, count)
    else next.delete(key)
  }
  return next
}
