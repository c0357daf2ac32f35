import { lazy, type ReactNode, Suspense } from 'react'
import type { AnswerOf } from '../../../src/service/contract.ts'
import { useAct } from '../parts/act.tsx'
import { Empty, Head, Loading, Shown } from '../parts/panel.tsx'
import { Chip } from '../parts/state.tsx'
import { clock, counted, span } from '../parts/words.ts'
import { useAsk, useRoom } from '../room.ts'
import { refine, to, usePlace } from '../route.ts'

const Graph = lazy(async () => ({ default: (await import('./run-graph.tsx')).RunGraph }))

type Run = AnswerOf<'runs'>['runs'][number]
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

export function RunsView() {
  const { id } = usePlace()
  return id === undefined ? <AllRuns /> : <OneRun key={id} id={id} />
}

function AllRuns() {
  const answer = useAsk('runs', async (client) => (await client.runs({ limit: 200 })).runs.toReversed(), [
    'run',
  ])
  return (
    <>
      <Head title="Runs" note={answer.data === undefined ? undefined : counted(answer.data.length, 'run')} />
      <Shown answer={answer}>
        {(runs) =>
          runs.length === 0 ? (
            <Empty title="No runs yet">
              <p>
                A run carries out a <code>plan.yaml</code>: agents with what each needs and gives, as a graph.
              </p>
              <p>
                Start one with <code>orc run plan.yaml</code>; its progress, logs and outputs are then here.
              </p>
            </Empty>
          ) : (
            <ul className="list">
              {runs.map((run) => (
                <li key={run.id}>
                  <a className="line" href={to('runs', run.id)}>
                    <Chip word={run.state} tone={runTone(run.state)} />
                    <span className="line-main">
                      <b>{run.name}</b> {run.goal ?? ''}
                    </span>
                    <Progress run={run} />
                    <span className="label">
                      {run.id} · {clock(run.created_at)}
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </>
  )
}

function Progress({ run }: { run: Run }) {
  const done = run.counts.completed ?? 0
  return (
    <span className="progress">
      <span className="context-bar" aria-hidden="true">
        <i style={{ width: `${run.agents === 0 ? 0 : (done / run.agents) * 100}%` }} />
      </span>
      {done} of {run.agents}
    </span>
  )
}

function OneRun({ id }: { id: string }) {
  const room = useRoom()
  const [act, isBusy] = useAct()
  const { query } = usePlace()
  const chosen = query.get('node')
  const answer = useAsk(`run:${id}`, (client) => client.run(id), ['run', 'task', 'human'])
  const node = answer.data?.nodes.find(({ name }) => name === chosen)
  return (
    <>
      <Head
        title={answer.data?.name ?? id}
        note={answer.data === undefined ? undefined : <RunNote run={answer.data} />}
      >
        <a className="button" href={to('runs')}>
          All runs
        </a>
        {room.mayAct() && answer.data?.state === 'running' ? (
          <button
            type="button"
            className="button"
            data-kind="danger"
            disabled={isBusy}
            onClick={() =>
              void act(async () => {
                await room.client.cancelRun(id)
                room.touch('run')
                return `${id} is being cancelled.`
              })
            }
          >
            Cancel run
          </button>
        ) : null}
      </Head>
      <Shown answer={answer}>
        {({ nodes }) => (
          <div className="split" data-open={node !== undefined}>
            <div className="run-graph">
              <Suspense fallback={<Loading />}>
                <Graph nodes={nodes} onChoose={(name) => refine(to('runs', id, { node: name }))} />
              </Suspense>
            </div>
            {node === undefined ? null : <NodeAside node={node} onClose={to('runs', id)} />}
          </div>
        )}
      </Shown>
    </>
  )
}

function RunNote({ run }: { run: Run }) {
  return (
    <>
      <Chip word={run.state} tone={runTone(run.state)} /> <Progress run={run} /> · {span(run.elapsed_ms)}
      {run.round > 1 ? ` · round ${run.round}` : ''}
    </>
  )
}

function NodeAside({ node, onClose }: { node: RunNode; onClose: string }) {
  return (
    <aside className="aside" aria-label={node.name}>
      <div className="aside-head">
        <h2>{node.name}</h2>
        <a className="button" data-kind="quiet" href={onClose}>
          Close
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
              {number}. {why}
            </span>
          </li>
        ))}
      </List>
      <List title="Outputs">
        {node.outputs.map(({ path, bytes }) => (
          <li key={path}>
            <span>
              <code>{path}</code> <span className="label">{counted(bytes, 'byte')}</span>
            </span>
          </li>
        ))}
      </List>
    </aside>
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
