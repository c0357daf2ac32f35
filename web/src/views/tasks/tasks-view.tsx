import { useMemo } from 'react'
import { formatCost, formatDuration, formatTime, pluralize } from '../../components/format.ts'
import { requireSuccess, useAction } from '../../components/notifications.tsx'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, QueryResult, Segments, SidePanel, ViewHeader } from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { type Task, useServiceQuery } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { linkTo, useRoute } from '../../route.ts'

export function TasksView() {
  const { id, query } = useRoute()
  const isAll = query.get('show') === 'all'
  const answer = useServiceQuery('tasks', [isAll ? 'all' : 'open'])
  const tree = useMemo(() => treeOf(answer.data ?? []), [answer.data])
  return (
    <>
      <ViewHeader
        title="Tasks"
        note={answer.data === undefined ? undefined : pluralize(tree.length, isAll ? 'task' : 'open task')}
      >
        <Segments
          chosen={isAll ? 'All' : 'Open'}
          links={{ Open: linkTo('tasks', id), All: linkTo('tasks', id, { show: 'all' }) }}
        />
      </ViewHeader>
      <div className="split" data-open={id !== undefined}>
        <div>
          <QueryResult answer={answer}>
            {() =>
              tree.length === 0 ? (
                <EmptyState title={isAll ? 'No tasks yet' : 'No open tasks'}>
                  <p>
                    <code>orc ask "…"</code> gives the team a task; agents also delegate to each other.
                  </p>
                </EmptyState>
              ) : (
                <VirtualList items={tree} size={38} label="Tasks" keyOf={({ task }) => task.id} chosen={id}>
                  {({ task, depth }) => (
                    <a
                      className="line task"
                      href={linkTo('tasks', task.id, { show: isAll ? 'all' : undefined })}
                      aria-current={task.id === id ? 'true' : undefined}
                    >
                      <span className="task-indent" style={{ width: depth * 18 }} aria-hidden="true" />
                      <Chip word={task.state} />
                      <span className="line-main">
                        <b>{task.agent}</b> {task.task}
                        {task.waits_for.length === 0 ? null : (
                          <span className="waits"> waiting for {task.waits_for.join('; ')}</span>
                        )}
                      </span>
                      <span className="label">
                        {task.attempt > 1 ? `attempt ${task.attempt} of ${task.max_attempts} · ` : ''}
                        {task.id}
                      </span>
                    </a>
                  )}
                </VirtualList>
              )
            }
          </QueryResult>
        </div>
        {id === undefined ? null : (
          <TaskPanel
            key={id}
            id={id}
            closeLink={linkTo('tasks', undefined, { show: isAll ? 'all' : undefined })}
          />
        )}
      </div>
    </>
  )
}

interface Branch {
  task: Task
  depth: number
}

/** Puts each task under its parent; a task whose parent is not listed is a root. */
export function treeOf(tasks: readonly Task[]): Branch[] {
  const known = new Set(tasks.map(({ id }) => id))
  const below = new Map<string | undefined, Task[]>()
  for (const task of tasks) {
    const parent = task.parent !== undefined && known.has(task.parent) ? task.parent : undefined
    below.set(parent, [...(below.get(parent) ?? []), task])
  }
  const lines: Branch[] = []
  const walk = (parent: string | undefined, depth: number) => {
    for (const task of below.get(parent) ?? []) {
      lines.push({ task, depth })
      walk(task.id, depth + 1)
    }
  }
  walk(undefined, 0)
  return lines
}

function TaskPanel({ id, closeLink }: { id: string; closeLink: string }) {
  const service = useService()
  const [act, isBusy] = useAction()
  const answer = useServiceQuery('task', [id])
  const command = (action: string, done: string) => () =>
    void act(async () => {
      requireSuccess(await service.client.command({ type: 'task_action', task_id: id, action }))
      service.refreshTopics('task')
      return done
    })
  return (
    <SidePanel label={id} title={answer.data?.task ?? id} closeLink={closeLink}>
      <QueryResult answer={answer}>
        {(task) => (
          <>
            <p className="label">{id}</p>
            <dl className="pairs">
              <dt>State</dt>
              <dd>
                <Chip word={task.state} /> {task.reason ?? ''}
              </dd>
              <dt>Delegated</dt>
              <dd>
                <a href={linkTo('agents', task.delegator)}>{task.delegator}</a> →{' '}
                <a href={linkTo('agents', task.agent)}>{task.agent}</a>
              </dd>
              <dt>Created</dt>
              <dd>{formatTime(task.created_at)}</dd>
              {task.due === undefined ? null : (
                <>
                  <dt>{task.due.kind}</dt>
                  <dd>{formatTime(task.due.at)}</dd>
                </>
              )}
              {task.waits_for.length === 0 ? null : (
                <>
                  <dt>Waiting for</dt>
                  <dd>{task.waits_for.join('; ')}</dd>
                </>
              )}
              {task.spent === undefined ? null : (
                <>
                  <dt>Cost</dt>
                  <dd>{formatCost(task.spent.cost)}</dd>
                </>
              )}
            </dl>
            {task.result === undefined ? null : (
              <div>
                <p className="section">Result</p>
                <pre className="block">{task.result}</pre>
              </div>
            )}
            {task.evidence.length === 0 ? null : (
              <div>
                <p className="section">Evidence</p>
                <ol className="steps">
                  {task.evidence.map((one) => (
                    <li key={`${one.claim}${one.step}${one.at}`}>
                      <Chip
                        word={one.outcome}
                        tone={one.outcome === 'passed' ? 'done' : one.outcome === 'failed' ? 'bad' : 'off'}
                      />
                      <span>
                        {one.step}: {one.text}
                        {one.checks?.map((check) => (
                          <span key={check.name} className="label">
                            <br />
                            {check.passed ? '✓' : '✗'} {check.name} ({formatDuration(check.ms)}) {check.why}
                          </span>
                        ))}
                      </span>
                    </li>
                  ))}
                </ol>
              </div>
            )}
            {task.messages.length === 0 ? null : (
              <div>
                <p className="section">Messages</p>
                <ol className="steps">
                  {task.messages.map((mail) => (
                    <li key={mail.id}>
                      <span className="label">{formatTime(mail.at)}</span>
                      <Chip word={mail.delivery} />
                      <span>
                        <b>
                          {mail.from} → {mail.to}
                        </b>{' '}
                        {mail.title}
                      </span>
                    </li>
                  ))}
                </ol>
              </div>
            )}
            {service.mayAct() && task.ended_at === undefined ? (
              <div className="verdicts">
                <button
                  type="button"
                  className="button"
                  disabled={isBusy}
                  onClick={command('take_over', `You have taken over ${id}; report the result in the inbox.`)}
                >
                  Take over
                </button>
                <button
                  type="button"
                  className="button"
                  data-kind="danger"
                  disabled={isBusy}
                  onClick={command('cancel', `Cancelled ${id}.`)}
                >
                  Cancel task
                </button>
              </div>
            ) : null}
          </>
        )}
      </QueryResult>
    </SidePanel>
  )
}
