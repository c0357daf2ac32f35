import { useMemo, useState } from 'react'
import type { Client } from '../../../../src/client/client.ts'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { AgentPicker } from '../../components/agent-picker.tsx'
import { clock, counted } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { useAct } from '../../components/notifications.tsx'
import { Empty, Head, Shown } from '../../components/view-layout.tsx'
import { Rows } from '../../components/virtual-list.tsx'
import { type Entry, useAsk, useRoom } from '../../data/service.ts'
import { useNow } from '../../data/service-clock.ts'
import { refine, to, usePlace } from '../../route.ts'
import { stillWithin } from './within-span.ts'

const LIMIT = 1000
const PEOPLE = ['operator', 'system']
const SPANS = ['10m', '1h', '6h', '1d', '7d']
const FILTERS = ['text', 'agent', 'type', 'since'] as const
type Filter = Record<(typeof FILTERS)[number], string>

export function AuditView() {
  const room = useRoom()
  const { id, query } = usePlace()
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ''])) as Filter
  const answer = useAsk<Entry[]>(
    `audit:${JSON.stringify(filter)}`,
    async (client, before) => {
      const said = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
      return await readOn(client, said, before)
    },
    'all',
    1500,
  )
  const now = useNow()
  const entries = useMemo(() => stillWithin(answer.data, filter.since, now), [answer.data, filter.since, now])
  const set = (name: keyof Filter) => (event: { target: { value: string } }) =>
    refine(to('audit', undefined, { ...filter, [name]: event.target.value }))
  const listed = entries?.find(({ seq }) => String(seq) === id)
  const old = useEntry(answer.data === undefined || listed !== undefined ? undefined : id)
  const chosen = listed ?? old
  return (
    <>
      <Head title="Audit" note={entries === undefined ? undefined : noteOf(entries.length)}>
        {room.mayAct() || room.me.kind !== 'agent' ? <Verify /> : null}
      </Head>
      <div className="filters">
        <input
          aria-label="Search the text"
          placeholder="Search the text"
          defaultValue={filter.text}
          onChange={debounced(set('text'))}
        />
        <AgentPicker
          label="Agent"
          placeholder="every agent"
          also={PEOPLE}
          value={filter.agent}
          onPick={(value) => set('agent')({ target: { value } })}
        />
        <input
          aria-label="Type"
          placeholder="Type, such as message"
          defaultValue={filter.type}
          onChange={debounced(set('type'))}
        />
        <select aria-label="Since" value={filter.since} onChange={set('since')}>
          <option value="">from the beginning</option>
          {SPANS.map((one) => (
            <option key={one} value={one}>
              last {one}
            </option>
          ))}
        </select>
      </div>
      <div className="split" data-open={chosen !== undefined}>
        <div>
          <Shown answer={{ ...answer, data: entries }}>
            {(shown) =>
              shown.length === 0 ? (
                <Empty title="Nothing fits" />
              ) : (
                <Rows
                  items={shown}
                  size={30}
                  label="Audit entries, newest first"
                  keyOf={({ seq }) => seq}
                  chosen={id === undefined ? undefined : Number(id)}
                >
                  {(entry) => (
                    <a
                      className="line entry"
                      href={to('audit', String(entry.seq), filter)}
                      aria-current={entry === chosen ? 'true' : undefined}
                    >
                      <span className="label mono">{entry.seq}</span>
                      <span className="label">{clock(entry.at)}</span>
                      <code data-topic={entry.type.split('.', 1)[0]}>{entry.type}</code>
                      <span className="line-main">
                        <b>{entry.actor}</b>
                        {whom(entry)} {entry.text}
                      </span>
                    </a>
                  )}
                </Rows>
              )
            }
          </Shown>
        </div>
        {chosen === undefined ? null : <EntryAside entry={chosen} onClose={to('audit', undefined, filter)} />}
      </div>
    </>
  )
}

/** One that is not in the list: it may be older, or not fit the filter. */
function useEntry(id: string | undefined): Entry | undefined {
  const seq = Number(id ?? Number.NaN)
  const answer = useAsk<Entry | undefined>(
    `entry:${id ?? ''}`,
    async (client) => {
      if (!Number.isSafeInteger(seq) || seq < 1) return undefined
      for await (const entry of client.audit({ after: seq - 1, limit: 1 })) return entry
      return undefined
    },
    [],
  )
  return answer.data?.seq === seq ? answer.data : undefined
}

/** Newest first. The audit only grows: what is known stays, and what came since is read. */
async function readOn(client: Client, filter: object, before: readonly Entry[] = []): Promise<Entry[]> {
  const after = before[0]?.seq
  const fresh: Entry[] = []
  const query = { ...filter, limit: LIMIT, ...(after === undefined ? {} : { after }) }
  for await (const entry of client.audit(query)) fresh.push(entry)
  // There may be more than that since; then the newest are wanted, and not the next.
  if (after !== undefined && fresh.length === LIMIT) return readOn(client, filter)
  return [...fresh.toReversed(), ...before].slice(0, LIMIT)
}

function noteOf(count: number): string {
  return count === LIMIT ? `the newest ${LIMIT.toLocaleString('en')}` : counted(count, 'entry', 'entries')
}

/** Whom it is about, unless that says nothing more. */
function whom({ actor, subject }: Entry): string {
  return subject === undefined || subject === actor ? '' : ` → ${subject}`
}

let timer: ReturnType<typeof setTimeout> | undefined
function debounced(set: (event: { target: { value: string } }) => void) {
  return ({ target: { value } }: { target: { value: string } }) => {
    clearTimeout(timer)
    timer = setTimeout(() => set({ target: { value } }), 250)
  }
}

function EntryAside({ entry, onClose }: { entry: Entry; onClose: string }) {
  return (
    <aside className="aside" aria-label={`Entry ${entry.seq}`}>
      <div className="aside-head">
        <h2>
          {entry.seq} · {entry.type}
        </h2>
        <a className="button" data-kind="quiet" href={onClose} aria-label="Close">
          <Icon name="close" />
        </a>
      </div>
      <p>{entry.text}</p>
      <dl className="pairs">
        <dt>At</dt>
        <dd>{entry.at}</dd>
        <dt>Who</dt>
        <dd>
          {entry.actor}
          {whom(entry)}
        </dd>
        <dt>Class</dt>
        <dd>{entry.class}</dd>
        <dt>Hash</dt>
        <dd>
          <code>{entry.hash}</code>
        </dd>
      </dl>
      <pre className="block">{JSON.stringify(entry.data, null, 2)}</pre>
    </aside>
  )
}

function Verify() {
  const room = useRoom()
  const [act, isBusy] = useAct()
  const [result, setResult] = useState<AnswerOf<'auditVerify'>>()
  return (
    <>
      {result === undefined ? null : (
        <span className="verified" data-tone={result.ok ? 'done' : 'bad'} role="status">
          {result.ok
            ? `The chain is whole: ${counted(result.count, 'entry', 'entries')}`
            : `Entry ${result.seq ?? '?'}: ${result.problem ?? result.message}`}
        </span>
      )}
      <button
        type="button"
        className="button"
        disabled={isBusy}
        onClick={() =>
          void act(async () => {
            setResult(await room.client.verifyAudit())
            return undefined
          })
        }
      >
        <Icon name="check" />
        {isBusy ? 'Verifying …' : 'Verify the chain'}
      </button>
    </>
  )
}
