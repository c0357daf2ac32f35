import { useState } from 'react'
import { pluralize } from '../../components/format.ts'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, QueryResult, ViewHeader } from '../../components/view-layout.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { linkTo, replaceRoute, useRoute } from '../../route.ts'

const PAGE = 40
const MARKS = { allow: '●', ask: '◐', deny: '○' } as const
const WORDS = { allow: 'may write', ask: 'needs approval', deny: 'may not write' } as const
const TONES = { allow: 'done', ask: 'asks', deny: 'bad' } as const
const ACTIONS = [
  '',
  'urgent',
  'broadcast',
  'delegate',
  'spawn_agent',
  'terminate_agent',
  'reset_session',
  'pause_session',
  'resume_session',
  'read_log',
  'query_state',
]

export function RulesView() {
  const { query } = useRoute()
  const offset = Number(query.get('offset') ?? 0) || 0
  const answer = useServiceQuery('rulesMatrix', [offset, PAGE])
  const from = query.get('from') ?? ''
  const recipient = query.get('to') ?? ''
  const action = query.get('action') ?? ''
  const set = (more: Record<string, string | undefined>) =>
    replaceRoute(
      linkTo('rules', undefined, {
        from,
        to: recipient,
        action,
        offset: offset === 0 ? undefined : String(offset),
        ...more,
      }),
    )
  return (
    <>
      <ViewHeader title="Rules" note="who may write to whom">
        <span className="legend">
          {(['allow', 'ask', 'deny'] as const).map((verdict) => (
            <span key={verdict}>
              <i className="cell" data-verdict={verdict} aria-hidden="true">
                {MARKS[verdict]}
              </i>
              {WORDS[verdict]}
            </span>
          ))}
        </span>
      </ViewHeader>
      <QueryResult answer={answer}>
        {({ names, total, cells }) =>
          total === 0 ? (
            <EmptyState title="No agents yet" />
          ) : (
            <div className="rules">
              <div className="matrix-scroll">
                <table className="matrix">
                  <caption className="sr">A row for each sender, a column for each recipient</caption>
                  <thead>
                    <tr>
                      <th scope="col">
                        <span className="label">from ↓ to →</span>
                      </th>
                      {names.map((name) => (
                        <th key={name} scope="col">
                          <span className="matrix-column">{name}</span>
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {names.map((sender, row) => (
                      <tr key={sender}>
                        <th scope="row">{sender}</th>
                        {names.map((other, column) => {
                          const verdict = cells[row]![column]!
                          return (
                            <td key={other}>
                              <button
                                type="button"
                                className="cell"
                                data-verdict={verdict}
                                aria-pressed={from === sender && recipient === other}
                                aria-label={`${sender} to ${other}: ${WORDS[verdict]}`}
                                onClick={() => set({ from: sender, to: other, action: undefined })}
                              >
                                {MARKS[verdict]}
                              </button>
                            </td>
                          )
                        })}
                      </tr>
                    ))}
                  </tbody>
                </table>
                {total > names.length ? (
                  <p className="pager">
                    {offset + 1}–{offset + names.length} of {pluralize(total, 'agent')}
                    <button
                      type="button"
                      className="button"
                      disabled={offset === 0}
                      onClick={() => set({ offset: String(Math.max(0, offset - PAGE)) })}
                    >
                      Previous
                    </button>
                    <button
                      type="button"
                      className="button"
                      disabled={offset + PAGE >= total}
                      onClick={() => set({ offset: String(offset + PAGE) })}
                    >
                      Next
                    </button>
                  </p>
                ) : null}
              </div>
              <RuleTester
                key={`${from}>${recipient}`}
                from={from}
                recipient={recipient}
                action={action}
                names={names}
                onTry={set}
              />
            </div>
          )
        }
      </QueryResult>
    </>
  )
}

interface TesterOptions {
  from: string
  recipient: string
  action: string
  names: readonly string[]
  onTry: (query: Record<string, string | undefined>) => void
}

/** Explains a decision without executing anything; the service uses the same code for real commands. */
function RuleTester({ from, recipient, action, names, onTry }: TesterOptions) {
  const [draft, setDraft] = useState({ from, to: recipient, action })
  const set = (name: keyof typeof draft) => (event: { target: { value: string } }) =>
    setDraft((now) => ({ ...now, [name]: event.target.value }))
  return (
    <aside className="aside" aria-label="Try it">
      <h2 className="section">Try it</h2>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          onTry({ from: draft.from, to: draft.to, action: draft.action || undefined })
        }}
      >
        <datalist id="parties">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label className="field">
          <span>From</span>
          <input list="parties" value={draft.from} onChange={set('from')} required />
        </label>
        <label className="field">
          <span>To</span>
          <input list="parties" value={draft.to} onChange={set('to')} required />
        </label>
        <label className="field">
          <span>Action</span>
          <select value={draft.action} onChange={set('action')}>
            {ACTIONS.map((one) => (
              <option key={one} value={one}>
                {one === '' ? 'send a message' : one}
              </option>
            ))}
          </select>
        </label>
        <div className="dialog-foot">
          <button type="submit" className="button" data-kind="main">
            Explain
          </button>
        </div>
      </form>
      {from === '' || recipient === '' ? (
        <p className="label">Select a cell, or fill in the form.</p>
      ) : (
        <Explanation from={from} recipient={recipient} action={action} />
      )}
    </aside>
  )
}

function Explanation({ from, recipient, action }: { from: string; recipient: string; action: string }) {
  const answer = useServiceQuery('explain', [
    { from, to: recipient, ...(action === '' ? {} : { action: action as never }) },
  ])
  return (
    <QueryResult answer={answer}>
      {({ decision, steps }) => (
        <div className="explained">
          <p>
            <Chip word={decision.verdict} tone={TONES[decision.verdict]} />{' '}
            <b>
              {from} → {recipient}
            </b>
          </p>
          <p>{decision.reason}</p>
          <p className="label">
            decided by <code>{decision.rule}</code>
            {decision.line === undefined ? '' : `, line ${decision.line} of orc.yaml`}
          </p>
          <p className="section">Rules checked, in order</p>
          <ol className="steps">
            {steps.map((step, index) => (
              <li key={index}>
                <span>
                  <code>{step.rule}</code> {step.reason}
                </span>
              </li>
            ))}
          </ol>
        </div>
      )}
    </QueryResult>
  )
}
