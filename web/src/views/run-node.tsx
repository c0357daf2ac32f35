import type { ReactNode } from 'react'
import type { Client } from '../../../src/client/client.ts'
import type { AnswerOf } from '../../../src/service/contract.ts'
import { Icon } from '../parts/icon.tsx'
import { Shown } from '../parts/panel.tsx'
import { Chip } from '../parts/state.tsx'
import { counted } from '../parts/words.ts'
import { useAsk } from '../room.ts'
import { to, usePlace } from '../route.ts'
import { type RunNode, runTone } from './run-tone.ts'

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
        <RunFile
          title={`What attempt ${attempt} printed`}
          name={`log:${run}/${node.name}/${attempt}`}
          load={(client) => client.runLog(run, node.name, { attempt })}
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

function RunFile({
  title,
  name,
  load,
}: {
  title: string
  name: string
  load: (client: Client) => Promise<AnswerOf<'runLog'>>
}) {
  const answer = useAsk(name, load, ['run'], 1000)
  return (
    <div>
      <p className="section">{title}</p>
      <Shown answer={answer}>
        {({ text, bytes, cut }) => (
          <>
            {cut ? <p className="label">A part of {counted(bytes, 'byte')}</p> : null}
            <pre className="block log">{text}</pre>
          </>
        )}
      </Shown>
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
