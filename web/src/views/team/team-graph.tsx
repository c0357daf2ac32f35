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
import { money } from '../../components/format.ts'
import { useFit } from '../../components/graph-fit.ts'
import { Icon } from '../../components/icon.tsx'
import { Context, StateMark, toneOf } from '../../components/state-label.tsx'
import { type Entry, useEvents } from '../../data/service.ts'
import { to } from '../../route.ts'
import type { Drawing } from './graph-members.ts'
import type { Member } from './team-view.tsx'
import { layOut } from './tree-layout.ts'

const SIZE = { width: 232, height: 104, gapX: 28, gapY: 72 }
/** How long a message is seen to travel. */
const TALK_MS = 4000
/** More at once nobody can follow. */
const MOST_TALKS = 24
const MOST_MOVING = 8
const FIT = { maxZoom: 1.1, padding: 0.15 }
const ARROW = { type: MarkerType.ArrowClosed, color: 'var(--accent)', width: 14, height: 14 }

type MemberNode = Node<{ member: Member; below: number }, 'member'>
const NODE_TYPES = { member: memo(MemberCard, hasSameMember) }

export function TeamGraph({ drawn: members, below }: Drawing<Member>) {
  const shape = members.map(({ name, parent = '' }) => `${name}<${parent}`).join(';')
  const places = useMemo(() => layOut(members, SIZE), [shape])
  const talks = useTalks()
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
      .slice(-MOST_TALKS)
    return [
      ...tree,
      ...heard.map(([key, count]): Edge => {
        const [source, target] = key.split('>') as [string, string]
        return {
          id: `talk:${key}`,
          source,
          target,
          ...sidesOf(places.get(source)!.y, places.get(target)!.y),
          animated: heard.length <= MOST_MOVING,
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
      fitView
      fitViewOptions={FIT}
      {...useFit(FIT, shape)}
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

/** Down, up, or below those who stand beside each other: never through a card. */
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
      <a className="card-link" href={to('agents', member.name)}>
        <span className="card-head">
          <b>{member.name}</b>
          <StateMark state={state} />
        </span>
        <span className="card-task">{member.current_task ?? member.role ?? ' '}</span>
      </a>
      <span className="card-foot">
        {member.waiting > 0 ? (
          <span>
            <Icon name="mail" />
            {member.waiting}
            <span className="sr"> messages wait</span>
          </span>
        ) : null}
        {member.unclear > 0 ? <span className="unclear">{member.unclear} uncertain</span> : null}
        <Context context={member.context} />
        {member.spent === undefined ? null : <span>{money(member.spent)}</span>}
        {below === 0 ? (
          <span className="card-program" title={member.program ?? member.runtime}>
            {member.program ?? member.runtime}
          </span>
        ) : (
          <a className="card-below" href={to('team', undefined, { as: 'graph', root: member.name })}>
            + {below} below
          </a>
        )}
      </span>
      <Handle id="bottom-in" type="target" position={Position.Bottom} />
      <Handle id="bottom-out" type="source" position={Position.Bottom} />
    </div>
  )
}

/** The team is read anew twice a second, and most of it is as it was. */
function hasSameMember(before: NodeProps<MemberNode>, after: NodeProps<MemberNode>): boolean {
  return JSON.stringify(before.data) === JSON.stringify(after.data)
}

/** Who writes to whom just now, and how many messages. */
function useTalks(): ReadonlyMap<string, number> {
  const [talks, setTalks] = useState<ReadonlyMap<string, number>>(new Map())
  const [ends] = useState(() => new Set<ReturnType<typeof setTimeout>>())
  useEffect(
    () => () => {
      for (const end of ends) clearTimeout(end)
    },
    [ends],
  )
  useEvents(
    useCallback(
      (entries: readonly Entry[]) => {
        const heard = entries
          .filter(({ type, subject }) => type === 'message.accepted' && subject !== undefined)
          .map(({ actor, subject }) => `${actor}>${subject}`)
        if (heard.length === 0) return
        setTalks((now) => change(now, heard, 1))
        const end = setTimeout(() => {
          ends.delete(end)
          setTalks((now) => change(now, heard, -1))
        }, TALK_MS)
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
