import { type ReactNode, useEffect } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { pluralize } from '../../components/format.ts'
import { Chip } from '../../components/state-label.tsx'
import { QueryResult, SidePanel } from '../../components/view-layout.tsx'
import { type Loaded, useServiceQuery } from '../../data/queries.ts'
import type { QueryData } from '../../data/query-table.ts'
import { useService } from '../../data/service.ts'
import { whileVisible } from '../../data/while-visible.ts'
import { linkTo, useRoute } from '../../route.ts'

export type RunNode = AnswerOf<'run'>['nodes'][number]

const TONES: Record<string, string> = {
  waiting: 'off',
  ready: 'held',
  asking: 'asks',
  completed: 'done',
  partial: 'asks',
  failed: 'bad',
  skipped: 'off',
  cancelled: 'off',
}
export const runTone = (state: string) => TONES[state] ?? 'busy'

/** A node of a run: its state, its log and its outputs. */
export function NodePanel({ run, node }: { run: string; node: RunNode }) {
  const { query } = useRoute()
  const file = query.get('output') ?? undefined
  const attempt = Number(query.get('log') ?? 0)
  return (
    <SidePanel label={node.name} closeLink={linkTo('runs', run)}>
      <dl className="pairs">
        <dt>State</dt>
        <dd>
          <Chip word={node.state} tone={runTone(node.state)} /> {node.reason ?? ''}
        </dd>
        {node.waits_for.length === 0 ? null : (
          <>
            <dt>Waiting for</dt>
            <dd>{node.waits_for.join('; ')}</dd>
          </>
        )}
        <dt>Depends on</dt>
        <dd>{node.depends_on.join(', ') || 'nothing'}</dd>
        {node.step === undefined ? null : (
          <>
            <dt>Step</dt>
            <dd>{node.step}</dd>
          </>
        )}
        <dt>Workspace</dt>
        <dd>
          <code>{node.workspace}</code>
        </dd>
      </dl>
      {node.summary === undefined ? null : <pre className="block">{node.summary}</pre>}
      <List title="Attempts">
        {node.attempts.map(({ number, outcome, why }) => (
          <li key={number}>
            <Chip word={outcome} tone={runTone(outcome)} />
            <span>
              {number}. {why}{' '}
              <a className="more" href={linkTo('runs', run, { node: node.name, log: String(number) })}>
                log
              </a>
            </span>
          </li>
        ))}
      </List>
      <List title="Outputs">
        {node.outputs.map(({ path, bytes }) => (
          <li key={path}>
            <span>
              <a className="more" href={linkTo('runs', run, { node: node.name, output: path })}>
                <code>{path}</code>
              </a>{' '}
              <span className="label">{pluralize(bytes, 'byte')}</span>
            </span>
          </li>
        ))}
      </List>
      {attempt === 0 ? null : (
        <RunLog
          run={run}
          agent={node.name}
          attempt={attempt}
          isGrowing={node.attempts.some((one) => one.number === attempt && one.outcome === 'running')}
        />
      )}
      {file === undefined ? null : <RunOutput run={run} agent={node.name} path={file} />}
    </SidePanel>
  )
}

function RunLog({
  run,
  agent,
  attempt,
  isGrowing,
}: {
  run: string
  agent: string
  attempt: number
  isGrowing: boolean
}) {
  const service = useService()
  useEffect(() => {
    if (!isGrowing) return
    return whileVisible(async (signal) => {
      for await (const _ of service.client.runLogEvents(run, agent, attempt, { signal }))
        service.refreshQueries('runLog', run, agent, attempt)
    })
  }, [service, run, agent, attempt, isGrowing])
  const answer = useServiceQuery('runLog', [run, agent, attempt])
  return <RunFile title={`Log of attempt ${attempt}`} answer={answer} />
}

function RunOutput({ run, agent, path }: { run: string; agent: string; path: string }) {
  const answer = useServiceQuery('runOutput', [run, agent, path])
  return <RunFile title={path} answer={answer} />
}

function RunFile({ title, answer }: { title: string; answer: Loaded<QueryData<'runLog'>> }) {
  const { data, error } = answer
  // The attempt may not have started, or printed nothing: that is not an error.
  const isMissing = data === undefined && error?.code === 'NOT_FOUND'
  return (
    <div>
      <p className="section">{title}</p>
      {isMissing ? (
        <p className="label">{error.message}.</p>
      ) : (
        <QueryResult answer={answer}>
          {({ text, bytes, cut }) => (
            <>
              {cut ? <p className="label">Showing part of {pluralize(bytes, 'byte')}</p> : null}
              <pre className="block log">{text}</pre>
            </>
          )}
        </QueryResult>
      )}
    </div>
  )
}

function List({ title, children }: { title: string; children: ReactNode[] }) {
  if (children.length === 0) return null
  return (
    <div>
      <p className="section">{title}</p>
      <ol className="steps">{children}</ol>
    </div>
  )
}
