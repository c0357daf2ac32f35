import { Suspense, useMemo, useState } from 'react'
import { clock, counted, money } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { later } from '../../components/lazy-component.ts'
import { isNarrow } from '../../components/screen-size.ts'
import { Context, StateMark } from '../../components/state-label.tsx'
import { Empty, Head, Loading, Shown } from '../../components/view-layout.tsx'
import { Rows } from '../../components/virtual-list.tsx'
import { type Agent, type State, useRecent, useRequests, useTeam } from '../../data/service.ts'
import { refine, to, usePlace } from '../../route.ts'
import { byNeed, worthDrawing } from './graph-members.ts'

const Graph = later(async () => (await import('./team-graph.tsx')).TeamGraph)

/** Beyond this a drawing is a carpet: then a list comes first, and of the drawing only a part is shown. */
const MOST_DRAWN = 80

/** An agent with what else is known of it here. */
export interface Member extends Agent {
  waiting: number
  unclear: number
  asks: boolean
}

export function TeamView() {
  const answer = useTeam()
  const requests = useRequests().data
  const { query } = usePlace()
  const [search, setSearch] = useState('')
  const members = useMemo(
    () => membersOf(answer.data, new Set(requests?.map(({ asker }) => asker))),
    [answer.data, requests],
  )
  const isLarge = members.length > MOST_DRAWN || isNarrow()
  const wanted = query.get('as') ?? (isLarge ? 'list' : 'graph')
  const root = query.get('root') ?? ''
  const drawing = useMemo(() => worthDrawing(members, MOST_DRAWN, root), [members, root])
  const found = members
    .filter(({ name, role = '' }) => `${name} ${role}`.toLowerCase().includes(search.toLowerCase()))
    .toSorted(byNeed)

  return (
    <>
      <Head title="Team" note={answer.data === undefined ? undefined : summary(members)}>
        {wanted === 'list' ? (
          <input
            aria-label="Find an agent"
            placeholder="Find an agent"
            className="search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        ) : null}
        <div className="segments">
          <button
            type="button"
            aria-pressed={wanted === 'graph'}
            onClick={() => refine(to('team', undefined, { as: 'graph' }))}
          >
            Graph
          </button>
          <button
            type="button"
            aria-pressed={wanted === 'list'}
            onClick={() => refine(to('team', undefined, { as: 'list' }))}
          >
            List
          </button>
        </div>
      </Head>
      <Shown answer={answer}>
        {(state) =>
          state.agents.length === 0 ? (
            <Empty title="No agents yet">
              <p>
                Name them in <code>orc.yaml</code> under <code>agents:</code>; it is read again when it
                changes.
              </p>
            </Empty>
          ) : wanted === 'graph' ? (
            <div className="team">
              <div className="team-graph">
                <Suspense fallback={<Loading />}>
                  <Graph key={root} {...drawing} />
                </Suspense>
                {drawing.drawn.length === members.length ? null : (
                  <p className="team-part">
                    {root === '' ? null : <a href={to('team', undefined, { as: 'graph' })}>Whole team</a>}
                    <span>
                      {drawing.drawn.length} of {counted(members.length, 'agent')}. The list has them all.
                    </span>
                  </p>
                )}
              </div>
              <Activity />
            </div>
          ) : (
            <Rows items={found} size={44} label="Agents" keyOf={({ name }) => name}>
              {(member) => <MemberRow member={member} />}
            </Rows>
          )
        }
      </Shown>
    </>
  )
}

function membersOf(state: State | undefined, asking: ReadonlySet<string>): Member[] {
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
    counted(members.length, 'agent'),
    ...(asking === 0 ? [] : [`${asking} ${asking === 1 ? 'needs' : 'need'} a person`]),
    ...(spent === 0 ? [] : [`${money(spent)} spent`]),
  ].join(' · ')
}

function MemberRow({ member }: { member: Member }) {
  return (
    <a className="member" href={to('agents', member.name)} data-asks={member.asks}>
      <span className="member-name">{member.name}</span>
      <StateMark state={member.asks ? 'waiting_input' : member.session} />
      <span className="member-task">{member.current_task ?? member.role ?? ''}</span>
      <span className="member-figures">
        {member.unclear > 0 ? <span className="unclear">{member.unclear} uncertain</span> : null}
        {member.waiting > 0 ? (
          <span>
            <Icon name="mail" /> {member.waiting}
          </span>
        ) : null}
        <Context context={member.context} />
        {member.spent === undefined ? null : <span>{money(member.spent)}</span>}
      </span>
    </a>
  )
}

/** The states of agents are on their cards, the steps of deliveries with their messages. */
const QUIET = new Set(['delivery', 'token', 'session'])

/** What just happened, newest first; every line of it is in the audit. */
function Activity() {
  const recent = useRecent()
  const shown = recent.filter(({ type }) => !QUIET.has(type.split('.', 1)[0]!)).slice(-40)
  return (
    <section className="activity" aria-label="What just happened">
      <h2 className="section">Just now</h2>
      {shown.length === 0 ? <p className="label">Nothing since you came.</p> : null}
      <ol>
        {shown.toReversed().map(({ seq, at, type, actor, subject, text }) => (
          <li key={seq}>
            <a href={to('audit', String(seq))}>
              <span className="activity-head">
                <span>
                  <b>{actor}</b>
                  {subject === undefined || subject === actor ? '' : ` → ${subject}`}
                </span>
                <span className="label">
                  {type === 'message.accepted' ? '' : `${type} · `}
                  {clock(at)}
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
