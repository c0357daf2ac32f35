import { Suspense, useEffect } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { formatDuration, formatTime, pluralize } from '../../components/format.ts'
import { lazyComponent } from '../../components/lazy-component.ts'
import { useAction } from '../../components/notifications.tsx'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, Loading, QueryResult, ViewHeader } from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { whileVisible } from '../../data/while-visible.ts'
import { linkTo, useRoute } from '../../route.ts'
import { NodePanel, runTone } from './run-node.tsx'

const Graph = lazyComponent(async () => (await import('./run-graph.tsx')).RunGraph)

type Run = AnswerOf<'runs'>['runs'][number]

const isOpen = ({ state, trouble }: Run) => state === 'running' || trouble !== undefined

const wordOf = ({ state, gathering }: Run) => (gathering ? 'gathering outputs' : state)

export function RunsView() {
  const { id } = useRoute()
  return id === undefined ? <AllRuns /> : <OneRun key={id} id={id} />
}

function AllRuns() {
  const answer = useServiceQuery('runs', [])
  return (
    <>
      <ViewHeader
        title="Runs"
        note={answer.data === undefined ? undefined : pluralize(answer.data.length, 'run')}
      />
      <QueryResult answer={answer}>
        {(runs) =>
          runs.length === 0 ? (
            <EmptyState title="No runs yet">
              <p>
                A run executes a <code>plan.yaml</code>: a graph of agents with inputs and outputs.
              </p>
              <p>
                Start one with <code>orc run plan.yaml</code>; its progress, logs and outputs appear here.
              </p>
            </EmptyState>
          ) : (
            <VirtualList items={runs} size={37} label="Runs, newest first" keyOf={({ id }) => id}>
              {(run) => (
                <a className="line" href={linkTo('runs', run.id)}>
                  <Chip word={wordOf(run)} tone={runTone(run.state)} />
                  <span className="line-main">
                    <b>{run.name}</b> <Trouble run={run} /> {run.goal ?? ''}
                  </span>
                  <Progress run={run} />
                  <span className="label">
                    {run.id} · {formatTime(run.created_at)}
                  </span>
                </a>
              )}
            </VirtualList>
          )
        }
      </QueryResult>
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

/** Problems of a run, as on the command line. */
function Trouble({ run: { trouble, report_fault } }: { run: Run }) {
  const text = trouble ?? (report_fault === undefined ? undefined : `no report: ${report_fault}`)
  if (text === undefined) return null
  return <span className="trouble">{text}</span>
}

/** A full disk stops the audit log too, so problems of a run come by the run's own event stream. */
function useRunProblems(id: string, isWatched: boolean) {
  const service = useService()
  useEffect(() => {
    if (!isWatched) return undefined
    return whileVisible(async (signal) => {
      // The page already shows everything up to here.
      const after = service.events.recent().at(-1)?.seq
      const from = after === undefined ? {} : { after }
      for await (const { type } of service.client.runEvents(id, { ...from, signal })) {
        if (type === 'note') service.refreshTopics('run')
      }
    })
  }, [service, id, isWatched])
}

function OneRun({ id }: { id: string }) {
  const service = useService()
  const [act, isBusy] = useAction()
  const { query } = useRoute()
  const chosen = query.get('node')
  const answer = useServiceQuery('run', [id])
  useRunProblems(id, answer.data !== undefined && isOpen(answer.data))
  const node = answer.data?.nodes.find(({ name }) => name === chosen)
  return (
    <>
      <ViewHeader
        title={answer.data?.name ?? id}
        note={answer.data === undefined ? undefined : <RunNote run={answer.data} />}
      >
        <a className="button" href={linkTo('runs')}>
          All runs
        </a>
        {service.mayAct() && answer.data?.state === 'running' ? (
          <button
            type="button"
            className="button"
            data-kind="danger"
            disabled={isBusy}
            onClick={() =>
              void act(async () => {
                await service.client.cancelRun(id)
                service.refreshTopics('run')
                return `Cancelling ${id}.`
              })
            }
          >
            Cancel run
          </button>
        ) : null}
        {service.mayAct() && answer.data !== undefined && answer.data.state !== 'running' ? (
          <button
            type="button"
            className="button"
            data-kind="main"
            disabled={isBusy}
            title="Agents that completed with the same inputs are not run again"
            onClick={() =>
              void act(async () => {
                const { resumed, round } = await service.client.resumeRun(id, {
                  round: answer.data!.round + 1,
                })
                service.refreshTopics('run')
                return resumed ? `${id} resumed, round ${round}.` : `${id} is still running.`
              })
            }
          >
            Resume run
          </button>
        ) : null}
      </ViewHeader>
      <QueryResult answer={answer}>
        {({ nodes }) => (
          <div className="split" data-open={node !== undefined}>
            <div className="run-graph">
              <Suspense fallback={<Loading />}>
                <Graph nodes={nodes} linkTo={(name) => linkTo('runs', id, { node: name })} />
              </Suspense>
            </div>
            {node === undefined ? null : <NodePanel run={id} node={node} />}
          </div>
        )}
      </QueryResult>
    </>
  )
}

function RunNote({ run }: { run: Run }) {
  return (
    <>
      <Chip word={wordOf(run)} tone={runTone(run.state)} /> <Progress run={run} /> ·{' '}
      {formatDuration(run.elapsed_ms)}
      {run.round > 1 ? ` · round ${run.round}` : ''} <Trouble run={run} />
    </>
  )
}
