import { showInvisible, textOf } from '../../components/exact-text.ts'
import type { HumanRequest } from '../../data/queries.ts'
import { diffLines } from './diff-lines.ts'

type Action = NonNullable<HumanRequest['action']>

/** The full action: a person must see everything they approve. */
export function ProposedAction({ action, modified }: { action: Action; modified: HumanRequest['modified'] }) {
  return (
    <div className="action">
      <p className="action-head">
        <code>{action.type}</code>
        <span className="label">
          hash <code>{action.hash.slice(0, 12)}</code>
        </span>
      </p>
      <Fields fields={action.fields} />
      {modified === undefined ? null : (
        <div>
          <p className="section">changed by {modified.by}</p>
          {Object.entries(modified.changes).map(([name, { from, to }]) => (
            <div key={name}>
              <p className="label">{name}</p>
              <Diff before={textOf(from)} after={textOf(to)} />
            </div>
          ))}
        </div>
      )}
    </div>
  )
}

function Fields({ fields }: { fields: Record<string, unknown> }) {
  const before = fields.old_string
  const after = fields.new_string
  const isEdit = typeof before === 'string' && typeof after === 'string'
  return (
    <dl className="fields">
      {Object.entries(fields).map(([name, value]) =>
        isEdit && (name === 'old_string' || name === 'new_string') ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {isPlainObject(value) ? (
                <Fields fields={value} />
              ) : (
                <pre data-name={name}>{showInvisible(textOf(value))}</pre>
              )}
            </dd>
          </div>
        ),
      )}
      {isEdit ? (
        <div>
          <dt>change</dt>
          <dd>
            <Diff before={before} after={after} />
          </dd>
        </div>
      ) : null}
    </dl>
  )
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const SIGNS = { same: ' ', out: '−', in: '+' }

export function Diff({ before, after }: { before: string; after: string }) {
  return (
    <pre className="diff">
      {diffLines(before, after).map(({ kind, text }, index) => (
        <span key={index} data-kind={kind}>
          {SIGNS[kind]} {showInvisible(text)}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}
