import { useMemo, useState } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { AgentPicker } from '../../components/agent-picker.tsx'
import { formatTime, pluralize } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { useAction } from '../../components/notifications.tsx'
import { EmptyState, QueryResult, SidePanel, ViewHeader } from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { AUDIT_LIMIT, type AuditEntry } from '../../data/query-table.ts'
import { useService } from '../../data/service.ts'
import { useNow } from '../../data/service-clock.ts'
import { linkTo, replaceRoute, useRoute } from '../../route.ts'
import { withinSpan } from './within-span.ts'

const PEOPLE = ['operator', 'system']
const SPANS = ['10m', '1h', '6h', '1d', '7d']
const FILTERS = ['text', 'agent', 'type', 'since'] as const
type Filter = Record<(typeof FILTERS)[number], string>

export function AuditView() {
  const service = useService()
  const { id, query } = useRoute()
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ''])) as Filter
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
  const answer = useServiceQuery('audit', [given])
  const now = useNow()
  const entries = useMemo(() => withinSpan(answer.data, filter.since, now), [answer.data, filter.since, now])
  const set = (name: keyof Filter) => (event: { target: { value: string } }) =>
    replaceRoute(linkTo('audit', undefined, { ...filter, [name]: event.target.value }))
  const listed = entries?.find(({ seq }) => String(seq) === id)
  const old = useEntry(answer.data === undefined || listed !== undefined ? undefined : id)
  const chosen = listed ?? old
  return (
    <>
      <ViewHeader title="Audit" note={entries === undefined ? undefined : countNote(entries.length)}>
        {service.mayAct() || service.me.kind !== 'agent' ? <Verify /> : null}
      </ViewHeader>
      <div className="filters">
        <input
          aria-label="Search the text"
          placeholder="Search the text"
          defaultValue={filter.text}
          onChange={debounced(set('text'))}
        />
        <AgentPicker
          label="Agent"
          placeholder="All agents"
          also={PEOPLE}
          value={filter.agent}
          onPick={(value) => set('agent')({ target: { value } })}
        />
        <input
          aria-label="Type"
          placeholder="Type, e.g. message"
          defaultValue={filter.type}
          onChange={debounced(set('type'))}
        />
        <select aria-label="Since" value={filter.since} onChange={set('since')}>
          <option value="">all time</option>
          {SPANS.map((one) => (
            <option key={one} value={one}>
              last {one}
            </option>
          ))}
        </select>
      </div>
      <div className="split" data-open={chosen !== undefined}>
        <div>
          <QueryResult answer={{ ...answer, data: entries }}>
            {(shown) =>
              shown.length === 0 ? (
                <EmptyState title="No matching entries" />
              ) : (
                <VirtualList
                  items={shown}
                  size={30}
                  label="Audit entries, newest first"
                  keyOf={({ seq }) => seq}
                  chosen={id === undefined ? undefined : Number(id)}
                >
                  {(entry) => (
                    <a
                      className="line entry"
                      href={linkTo('audit', String(entry.seq), filter)}
                      aria-current={entry === chosen ? 'true' : undefined}
                    >
                      <span className="label mono">{entry.seq}</span>
                      <span className="label">{formatTime(entry.at)}</span>
                      <code data-topic={entry.type.split('.', 1)[0]}>{entry.type}</code>
                      <span className="line-main">
                        <b>{entry.actor}</b>
                        {subjectOf(entry)} {entry.text}
                      </span>
                    </a>
                  )}
                </VirtualList>
              )
            }
          </QueryResult>
        </div>
        {chosen === undefined ? null : (
          <EntryPanel entry={chosen} closeLink={linkTo('audit', undefined, filter)} />
        )}
      </div>
    </>
  )
}

/** Loads an entry that is not in the list: it may be older, or not match the filter. */
function useEntry(id: string | undefined): AuditEntry | undefined {
  const seq = Number(id ?? Number.NaN)
  const isEnabled = Number.isSafeInteger(seq) && seq >= 1
  const answer = useServiceQuery('auditEntry', [seq], { isEnabled })
  return answer.data?.seq === seq ? answer.data : undefined
}

function countNote(count: number): string {
  return count === AUDIT_LIMIT
    ? `the newest ${count.toLocaleString('en')}`
    : pluralize(count, 'entry', 'entries')
}

/** The subject, unless it is the actor. */
function subjectOf({ actor, subject }: AuditEntry): string {
  return subject === undefined || subject === actor ? '' : ` → ${subject}`
}

let timer: ReturnType<typeof setTimeout> | undefined
function debounced(set: (event: { target: { value: string } }) => void) {
  return ({ target: { value } }: { target: { value: string } }) => {
    clearTimeout(timer)
    timer = setTimeout(() => set({ target: { value } }), 250)
  }
}

function EntryPanel({ entry, closeLink }: { entry: AuditEntry; closeLink: string }) {
  return (
    <SidePanel label={`Entry ${entry.seq}`} title={`${entry.seq} · ${entry.type}`} closeLink={closeLink}>
      <p>{entry.text}</p>
      <dl className="pairs">
        <dt>Time</dt>
        <dd>{entry.at}</dd>
        <dt>Actor</dt>
        <dd>
          {entry.actor}
          {subjectOf(entry)}
        </dd>
        <dt>Class</dt>
        <dd>{entry.class}</dd>
        <dt>Hash</dt>
        <dd>
          <code>{entry.hash}</code>
        </dd>
      </dl>
      <pre className="block">{JSON.stringify(entry.data, null, 2)}</pre>
    </SidePanel>
  )
}

function Verify() {
  const service = useService()
  const [act, isBusy] = useAction()
  const [result, setResult] = useState<AnswerOf<'auditVerify'>>()
  return (
    <>
      {result === undefined ? null : (
        <span className="verified" data-tone={result.ok ? 'done' : 'bad'} role="status">
          {result.ok
            ? `Chain intact: ${pluralize(result.count, 'entry', 'entries')} verified`
            : `Entry ${result.seq ?? '?'}: ${result.problem ?? result.message}`}
        </span>
      )}
      <button
        type="button"
        className="button"
        disabled={isBusy}
        onClick={() =>
          void act(async () => {
            setResult(await service.client.verifyAudit())
            return undefined
          })
        }
      >
        <Icon name="check" />
        {isBusy ? 'Verifying …' : 'Verify chain'}
      </button>
    </>
  )
}
