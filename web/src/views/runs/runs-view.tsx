import { Suspense, useEffect } from 'react'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { clock, counted, span } from '../../components/format.ts'
import { later } from '../../components/lazy-component.ts'
import { useAct } from '../../components/notifications.tsx'
import { Chip } from '../../components/state-label.tsx'
import { Empty, Head, Loading, Shown } from '../../components/view-layout.tsx'
import { Rows } from '../../components/virtual-list.tsx'
import { useAsk, useRoom } from '../../data/service.ts'
import { whileSeen } from '../../data/while-visible.ts'
import { to, usePlace } from '../../route.ts'
import { NodeAside } from './run-node.tsx'
import { runTone } from './run-state.ts'

const Graph = later(async () => (await import('./run-graph.tsx')).RunGraph)

type Run = AnswerOf<'runs'>['runs'][number]

const isOpen = ({ state, trouble }: Run) => state === 'running' || trouble !== undefined

const wordOf = ({ state, gathering }: Run) => (gathering ? 'gathering outputs' : state)

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
            <Rows items={runs} size={37} label="Runs, newest first" keyOf={({ id }) => id}>
              {(run) => (
                <a className="line" href={to('runs', run.id)}>
                  <Chip word={wordOf(run)} tone={runTone(run.state)} />
                  <span className="line-main">
                    <b>{run.name}</b> <Trouble run={run} /> {run.goal ?? ''}
                  </span>
                  <Progress run={run} />
                  <span className="label">
                    {run.id} · {clock(run.created_at)}
                  </span>
                </a>
              )}
            </Rows>
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

/** What a look at a run must not overlook, as on the command line. */
function Trouble({ run: { trouble, report_fault } }: { run: Run }) {
  const text = trouble ?? (report_fault === undefined ? undefined : `it has no report: ${report_fault}`)
  if (text === undefined) return null
  return <span className="trouble">{text}</span>
}

/** While the disk is full nothing can be stored, and so the audit tells nothing: the run's own events do. */
function useNotices(id: string, isWatched: boolean) {
  const room = useRoom()
  useEffect(() => {
    if (!isWatched) return undefined
    return whileSeen(async (signal) => {
      // What is stored by now is shown already.
      const after = room.recent().at(-1)?.seq
      const from = after === undefined ? {} : { after }
      for await (const { type } of room.client.runEvents(id, { ...from, signal })) {
        if (type === 'note') room.touch('run')
      }
    })
  }, [room, id, isWatched])
}

function OneRun({ id }: { id: string }) {
  const room = useRoom()
  const [act, isBusy] = useAct()
  const { query } = usePlace()
  const chosen = query.get('node')
  const answer = useAsk(`run:${id}`, (client) => client.run(id), ['run', 'task', 'human'])
  useNotices(id, answer.data !== undefined && isOpen(answer.data))
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
        {room.mayAct() && answer.data !== undefined && answer.data.state !== 'running' ? (
          <button
            type="button"
            className="button"
            data-kind="main"
            disabled={isBusy}
            title="Whoever completed from the same inputs is not run again"
            onClick={() =>
              void act(async () => {
                const { resumed, round } = await room.client.resumeRun(id, { round: answer.data!.round + 1 })
                room.touch('run')
                return resumed ? `${id} goes on, round ${round}.` : `${id} had not ended, and goes on.`
              })
            }
          >
            Resume run
          </button>
        ) : null}
      </Head>
      <Shown answer={answer}>
        {({ nodes }) => (
          <div className="split" data-open={node !== undefined}>
            <div className="run-graph">
              <Suspense fallback={<Loading />}>
                <Graph nodes={nodes} linkTo={(name) => to('runs', id, { node: name })} />
              </Suspense>
            </div>
            {node === undefined ? null : <NodeAside run={id} node={node} />}
          </div>
        )}
      </Shown>
    </>
  )
}

function RunNote({ run }: { run: Run }) {
  return (
    <>
      <Chip word={wordOf(run)} tone={runTone(run.state)} /> <Progress run={run} /> · {span(run.elapsed_ms)}
      {run.round > 1 ? ` · round ${run.round}` : ''} <Trouble run={run} />
    </>
  )
}
