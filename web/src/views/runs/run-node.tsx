import { type ReactNode, useEffect } from 'react'
import type { Client } from '../../../../src/client/client.ts'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { counted } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { Chip } from '../../components/state-label.tsx'
import { Shown } from '../../components/view-layout.tsx'
import { useAsk, useRoom } from '../../data/service.ts'
import { whileSeen } from '../../data/while-visible.ts'
import { to, usePlace } from '../../route.ts'
import { type RunNode, runTone } from './run-state.ts'

/** One agent of a run: where it stands, what it printed, what it made. */
export function NodeAside({ run, node }: { run: string; node: RunNode }) {
  const { query } = usePlace()
  const file = query.get('output') ?? undefined
  const attempt = Number(query.get('log') ?? 0)
  return (
    <aside className="aside" aria-label={node.name}>
      <div className="aside-head">
        <h2>{node.name}</h2>
        <a className="button" data-kind="quiet" href={to('runs', run)} aria-label="Close">
          <Icon name="close" />
        </a>
      </div>
      <dl className="pairs">
        <dt>State</dt>
        <dd>
          <Chip word={node.state} tone={runTone(node.state)} /> {node.reason ?? ''}
        </dd>
        {node.waits_for.length === 0 ? null : (
          <>
            <dt>Waits for</dt>
            <dd>{node.waits_for.join('; ')}</dd>
          </>
        )}
        <dt>Needs</dt>
        <dd>{node.depends_on.join(', ') || 'nothing'}</dd>
        {node.step === undefined ? null : (
          <>
            <dt>Does</dt>
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
              <a className="more" href={to('runs', run, { node: node.name, log: String(number) })}>
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
              <a className="more" href={to('runs', run, { node: node.name, output: path })}>
                <code>{path}</code>
              </a>{' '}
              <span className="label">{counted(bytes, 'byte')}</span>
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
      {file === undefined ? null : (
        <RunFile
          title={file}
          name={`output:${run}/${node.name}/${file}`}
          load={(client) => client.runOutput(run, node.name, file)}
        />
      )}
    </aside>
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
  const room = useRoom()
  const name = `log:${run}/${agent}/${attempt}`
  useEffect(() => {
    if (!isGrowing) return
    return whileSeen(async (signal) => {
      for await (const _ of room.client.runLogEvents(run, agent, attempt, { signal })) room.touch(name)
    })
  }, [room, run, agent, attempt, name, isGrowing])
  return (
    <RunFile
      title={`What attempt ${attempt} printed`}
      name={name}
      load={(client) => client.runLog(run, agent, { attempt })}
    />
  )
}

function RunFile({
  title,
  name,
  load,
}: {
  title: string
  name: string
  load: (client: Client) => Promise<AnswerOf<'runLog'>>
}) {
  const answer = useAsk(name, load, ['run', name], 1000)
  const { data, error } = answer
  // It may not have begun, or printed nothing: that is no fault.
  const isMissing = data === undefined && error?.code === 'NOT_FOUND'
  return (
    <div>
      <p className="section">{title}</p>
      {isMissing ? (
        <p className="label">{error.message}.</p>
      ) : (
        <Shown answer={answer}>
          {({ text, bytes, cut }) => (
            <>
              {cut ? <p className="label">A part of {counted(bytes, 'byte')}</p> : null}
              <pre className="block log">{text}</pre>
            </>
          )}
        </Shown>
      )}
    </div>
  )
}

function List({ title, children }: { title: string; children: ReactNode[] }) {
  if (children.length === 0) return null
  return (
    <div>
      <p className="section">{title}</p>
      <ol className="ladder">{children}</ol>
    </div>
  )
}
