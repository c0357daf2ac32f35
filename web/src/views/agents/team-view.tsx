import { Suspense, useMemo, useState } from 'react'
import { formatCost, formatTime, pluralize } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { lazyComponent } from '../../components/lazy-component.ts'
import { ContextUsage, StateLabel } from '../../components/state-label.tsx'
import {
  EmptyState,
  isPhone,
  Loading,
  QueryResult,
  Segments,
  ViewHeader,
} from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { type Agent, type TeamState, useRecentEntries, useServiceQuery, useTeam } from '../../data/queries.ts'
import { linkTo, useRoute } from '../../route.ts'
import { byNeed, graphMembers } from './graph-members.ts'

const Graph = lazyComponent(async () => (await import('./team-graph.tsx')).TeamGraph)

/** Larger teams start as a list, and the graph shows only a part of them. */
const MAX_IN_GRAPH = 80

/** An agent with its waiting messages and requests. */
export interface Member extends Agent {
  waiting: number
  unclear: number
  asks: boolean
}

export function TeamView() {
  const answer = useTeam()
  const requests = useServiceQuery('openRequests', []).data
  const { query } = useRoute()
  const [search, setSearch] = useState('')
  const members = useMemo(
    () => membersOf(answer.data, new Set(requests?.map(({ asker }) => asker))),
    [answer.data, requests],
  )
  const isLarge = members.length > MAX_IN_GRAPH || isPhone()
  const wanted = query.get('as') ?? (isLarge ? 'list' : 'graph')
  const root = query.get('root') ?? ''
  const drawing = useMemo(() => graphMembers(members, MAX_IN_GRAPH, root), [members, root])
  const found = members
    .filter(({ name, role = '' }) => `${name} ${role}`.toLowerCase().includes(search.toLowerCase()))
    .toSorted(byNeed)

  return (
    <>
      <ViewHeader title="Team" note={answer.data === undefined ? undefined : summary(members)}>
        {wanted === 'list' ? (
          <input
            aria-label="Find an agent"
            placeholder="Find an agent"
            className="search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        ) : null}
        <Segments
          chosen={wanted === 'graph' ? 'Graph' : 'List'}
          links={{
            Graph: linkTo('team', undefined, { as: 'graph' }),
            List: linkTo('team', undefined, { as: 'list' }),
          }}
        />
      </ViewHeader>
      <QueryResult answer={answer}>
        {(state) =>
          state.agents.length === 0 ? (
            <EmptyState title="No agents yet">
              <p>
                Add them to <code>orc.yaml</code> under <code>agents:</code>; the service reloads it when it
                changes.
              </p>
            </EmptyState>
          ) : wanted === 'graph' ? (
            <div className="team">
              <div className="team-graph">
                <Suspense fallback={<Loading />}>
                  <Graph key={root} {...drawing} />
                </Suspense>
                {drawing.drawn.length === members.length ? null : (
                  <p className="team-part">
                    {root === '' ? null : <a href={linkTo('team', undefined, { as: 'graph' })}>Whole team</a>}
                    <span>
                      {drawing.drawn.length} of {pluralize(members.length, 'agent')}. The list shows all of
                      them.
                    </span>
                  </p>
                )}
              </div>
              <Activity />
            </div>
          ) : (
            <VirtualList items={found} size={44} label="Agents" keyOf={({ name }) => name}>
              {(member) => <MemberRow member={member} />}
            </VirtualList>
          )
        }
      </QueryResult>
    </>
  )
}

function membersOf(state: TeamState | undefined, asking: ReadonlySet<string>): Member[] {
  const waiting = new Map<string, { queued: number; uncertain: number }>()
  for (const { agent, state: at, count } of state?.deliveries ?? []) {
    const now = waiting.get(agent) ?? { queued: 0, uncertain: 0 }
    if (at === 'uncertain') now.uncertain += count
    else now.queued += count
    waiting.set(agent, now)
  }
  return (state?.agents ?? []).map((agent) => ({
    ...agent,
    waiting: waiting.get(agent.name)?.queued ?? 0,
    unclear: waiting.get(agent.name)?.uncertain ?? 0,
    asks: asking.has(agent.name) || agent.session === 'waiting_input',
  }))
}

function summary(members: readonly Member[]): string {
  const asking = members.filter(({ asks }) => asks).length
  const spent = members.reduce((sum, member) => sum + (member.spent ?? 0), 0)
  return [
    pluralize(members.length, 'agent'),
    ...(asking === 0 ? [] : [`${asking} ${asking === 1 ? 'needs' : 'need'} a person`]),
    ...(spent === 0 ? [] : [`${formatCost(spent)} spent`]),
  ].join(' · ')
}

function MemberRow({ member }: { member: Member }) {
  return (
    <a className="member" href={linkTo('agents', member.name)} data-asks={member.asks}>
      <span className="member-name">{member.name}</span>
      <StateLabel state={member.asks ? 'waiting_input' : member.session} />
      <span className="member-task">{member.current_task ?? member.role ?? ''}</span>
      <span className="member-figures">
        {member.unclear > 0 ? <span className="unclear">{member.unclear} uncertain</span> : null}
        {member.waiting > 0 ? (
          <span>
            <Icon name="mail" /> {member.waiting}
          </span>
        ) : null}
        <ContextUsage context={member.context} />
        {member.spent === undefined ? null : <span>{formatCost(member.spent)}</span>}
      </span>
    </a>
  )
}

/** Topics that the cards and messages already show. */
const HIDDEN_TOPICS = new Set(['delivery', 'token', 'session'])

/** The latest audit entries, newest first. */
function Activity() {
  const recent = useRecentEntries()
  const shown = recent.filter(({ type }) => !HIDDEN_TOPICS.has(type.split('.', 1)[0]!)).slice(-40)
  return (
    <section className="activity" aria-label="Recent activity">
      <h2 className="section">Recent activity</h2>
      {shown.length === 0 ? <p className="label">No activity yet.</p> : null}
      <ol>
        {shown.toReversed().map(({ seq, at, type, actor, subject, text }) => (
          <li key={seq}>
            <a href={linkTo('audit', String(seq))}>
              <span className="activity-head">
                <span>
                  <b>{actor}</b>
                  {subject === undefined || subject === actor ? '' : ` → ${subject}`}
                </span>
                <span className="label">
                  {type === 'message.accepted' ? '' : `${type} · `}
                  {formatTime(at)}
                </span>
              </span>
              <span className="activity-text">{text}</span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  )
}
