import { type ReactNode, type SyntheticEvent, useEffect, useLayoutEffect, useRef, useState } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { formatAge, formatDuration } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { useShortcuts } from '../../components/keyboard-shortcuts.tsx'
import { useAction } from '../../components/notifications.tsx'
import { Chip } from '../../components/state-label.tsx'
import type { HumanRequest } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { useNow } from '../../data/service-clock.ts'
import { linkTo } from '../../route.ts'
import { changesOf, editable, unreadableFields } from './edited-fields.ts'
import { ProposedAction } from './proposed-action.tsx'

type Decision = HumanRequest['decisions'][number]

interface CardOptions {
  request: HumanRequest
  /** The selected card of a list: its keyboard shortcuts work. */
  isChosen?: boolean
  isModal?: boolean
  /** The card appeared by itself, perhaps under a key or click meant for something else: ignore input for a moment. */
  isSudden?: boolean
  onDone?: () => void
}

const ARM_MS = 600

export function RequestKind({ kind }: { kind: HumanRequest['kind'] }) {
  return <Chip word={kind === 'input' ? 'question' : kind} tone="asks" />
}

/** A human request: who asks, why, the exact action, and the possible verdicts. */
export function RequestCard({
  request,
  isChosen = false,
  isModal = false,
  isSudden = false,
  onDone,
}: CardOptions) {
  const service = useService()
  const now = useNow()
  const [act, isBusy] = useAction()
  const [comment, setComment] = useState('')
  const [choice, setChoice] = useState<string>()
  const [changed, setChanged] = useState<Record<string, string>>()
  const unreadable = changed === undefined ? [] : unreadableFields(request, changed)
  const isArmed = useArmed(isSudden)
  const may = (decision: Decision) => request.decisions.includes(decision) && !isBusy && isArmed
  const choices = request.choices ?? []
  const isQuestion = request.decisions.includes('answer')
  const isNotice = request.kind === 'escalation' && request.decisions.join() === 'approve'
  // A question with fixed choices accepts no other text.
  const isFixedChoice = choices.length > 0 && request.allow_other !== true
  const hasTextField = !isFixedChoice || request.decisions.some((one) => one !== 'answer')
  const typedAnswer = choice ?? comment.trim()
  const isUnanswered = typedAnswer === '' && request.default === undefined
  const place = useRef<HTMLElement>(null)
  useEffect(() => {
    if (isChosen) place.current?.scrollIntoView({ block: 'nearest' })
  }, [isChosen])

  async function decide(decision: Decision, more: Partial<Parameters<typeof service.client.decide>[1]> = {}) {
    const text = comment.trim()
    const isDone = await act(async () => {
      const answer = await service.client.decide(request.id, {
        decision,
        ...(text === '' ? {} : { comment: text }),
        ...(request.action === undefined ? {} : { hash: request.action.hash }),
        ...more,
      })
      service.refreshTopics('human')
      return noticeOf(answer, request)
    })
    if (isDone) {
      setChanged(undefined)
      setComment('')
      onDone?.()
    }
  }

  const approve = () => {
    if (!may('approve')) return
    if (changed === undefined) void decide('approve')
    else if (unreadable.length === 0) void decide('modify', { fields: changesOf(request, changed) })
  }
  const answer = (text: string) => {
    if (may('answer')) void decide('answer', { comment: text })
  }
  const modify = () => setChanged(editable(request))

  useShortcuts(
    isChosen || isModal
      ? {
          a: may('approve') ? approve : undefined,
          x: may('reject') ? () => void decide('reject') : undefined,
          m: may('modify') && request.action !== undefined ? modify : undefined,
          ...Object.fromEntries(
            choices
              .slice(0, 9)
              .map((one, index) => [String(index + 1), may('answer') ? () => answer(one) : undefined]),
          ),
        }
      : {},
    isModal,
  )

  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    if (!isQuestion) approve()
    else if (!isUnanswered) answer(typedAnswer)
  }

  return (
    <article
      ref={place}
      className="request"
      data-chosen={isChosen}
      aria-label={`${request.id}, asked by ${request.asker}`}
    >
      <header className="request-head">
        <a href={linkTo('agents', request.asker)} className="request-who">
          {request.asker}
        </a>
        <RequestKind kind={request.kind} />
        <span className="label">
          {request.id} · {formatAge(request.created_at, now)}
          {request.state === 'open' && request.expires_at !== undefined
            ? ` · ${untilText(request.expires_at, now)}`
            : ''}
        </span>
        {request.task_id === undefined ? null : (
          <a href={linkTo('tasks', request.task_id)}>{request.task_id}</a>
        )}
      </header>
      <p className="request-question" id={questionId(request)}>
        {request.question}
      </p>
      {request.reason === '' ? null : <p className="label">Reason: {request.reason}</p>}
      {request.action === undefined ? null : (
        <ProposedAction action={request.action} modified={request.modified} />
      )}
      {request.quorum > 1 || request.approvals.length > 0 ? (
        <p className="label">
          {request.approvals.length} of {request.quorum} approvals
          {request.approvals.length === 0 ? '' : `: ${request.approvals.map(({ by }) => by).join(', ')}`}
          {request.approvers === undefined ? '' : ` (approvers: ${request.approvers.join(', ')})`}
        </p>
      ) : null}
      <form onSubmit={submit} className="request-form">
        {choices.length === 0 ? null : (
          <fieldset className="choices" disabled={!isQuestion}>
            <legend className="sr">Answers</legend>
            {choices.map((one, index) => (
              <label key={one} data-chosen={choice === one}>
                <input
                  type="radio"
                  name={request.id}
                  checked={choice === one}
                  required={isFixedChoice && request.default === undefined}
                  onChange={() => setChoice(one)}
                />
                <span>
                  {one}
                  {one === request.default ? <span className="label"> (default)</span> : null}
                </span>
                {isQuestion && index < 9 ? <Key>{index + 1}</Key> : null}
              </label>
            ))}
          </fieldset>
        )}
        {changed === undefined ? null : (
          <Edit fields={changed} unreadable={unreadable} onChange={setChanged} />
        )}
        {request.state !== 'open' ? (
          <p>
            <Chip word={request.state} tone={request.state === 'rejected' ? 'bad' : 'done'} />{' '}
            {request.decided_by === undefined ? '' : `by ${request.decided_by}`}
            {request.decided_at === undefined ? '' : `, ${formatAge(request.decided_at, now)}`}
            {request.comment === undefined ? '' : `: “${request.comment}”`}
          </p>
        ) : request.decisions.length === 0 ? (
          <p className="label">You can view this request, but not decide it.</p>
        ) : (
          <>
            {hasTextField ? (
              <label className="field">
                <span>
                  {!isQuestion
                    ? isNotice
                      ? 'Comment (optional)'
                      : `Comment for ${request.asker} (optional)`
                    : choices.length === 0
                      ? 'Your answer'
                      : 'Another answer'}
                </span>
                <textarea
                  rows={2}
                  value={comment}
                  required={isQuestion && choices.length === 0 && request.default === undefined}
                  onChange={(event) => {
                    setComment(event.target.value)
                    setChoice(undefined)
                  }}
                  placeholder={request.default === undefined ? '' : `Default: ${request.default}`}
                  onKeyDown={(event) => {
                    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event)
                  }}
                />
              </label>
            ) : null}
            <div className="verdicts">
              {isQuestion ? (
                <button type="submit" className="button" data-kind="main" disabled={isBusy || !isArmed}>
                  Answer
                </button>
              ) : null}
              {request.decisions.includes('approve') ? (
                <button
                  type="button"
                  className="button"
                  data-kind="main"
                  disabled={isBusy || !isArmed || unreadable.length > 0}
                  onClick={approve}
                >
                  <Icon name="check" />
                  {isNotice ? 'Acknowledge' : changed === undefined ? 'Approve' : 'Approve with edits'}{' '}
                  <Key>a</Key>
                </button>
              ) : null}
              {request.decisions.includes('reject') ? (
                <button
                  type="button"
                  className="button"
                  data-kind="danger"
                  disabled={isBusy || !isArmed}
                  onClick={() => void decide('reject')}
                >
                  <Icon name="close" />
                  Reject <Key>x</Key>
                </button>
              ) : null}
              {request.decisions.includes('modify') && request.action !== undefined ? (
                <button
                  type="button"
                  className="button"
                  disabled={isBusy || !isArmed}
                  onClick={() => (changed === undefined ? modify() : setChanged(undefined))}
                >
                  {changed === undefined ? 'Edit' : 'Discard edits'} <Key>m</Key>
                </button>
              ) : null}
            </div>
          </>
        )}
      </form>
    </article>
  )
}

export function questionId({ id }: HumanRequest): string {
  return `question-${id}`
}

function useArmed(isSudden: boolean): boolean {
  const [isArmed, setArmed] = useState(!isSudden)
  // A layout effect runs before the next key event; an effect might run after it.
  useLayoutEffect(() => {
    setArmed(!isSudden)
    if (!isSudden) return
    const timer = setTimeout(() => setArmed(true), ARM_MS)
    return () => clearTimeout(timer)
  }, [isSudden])
  return isArmed
}

/** A visual hint only: screen readers skip it. */
function Key({ children }: { children: ReactNode }) {
  return (
    <span className="key" aria-hidden="true">
      {children}
    </span>
  )
}

function Edit({
  fields,
  unreadable,
  onChange,
}: {
  fields: Record<string, string>
  unreadable: readonly string[]
  onChange: (fields: Record<string, string>) => void
}) {
  return (
    <div className="edit">
      {Object.entries(fields).map(([name, value]) => (
        <label key={name} className="field">
          <span>{name}</span>
          <textarea
            className="mono"
            rows={Math.min(12, value.split('\n').length + 1)}
            value={value}
            aria-invalid={unreadable.includes(name) ? true : undefined}
            onChange={(event) => onChange({ ...fields, [name]: event.target.value })}
          />
          {unreadable.includes(name) ? (
            <span className="fault" role="alert">
              This is not valid JSON: check quotation marks and brackets.
            </span>
          ) : null}
        </label>
      ))}
    </div>
  )
}

function noticeOf({ request, receipt }: AnswerOf<'decide'>, before: HumanRequest): string {
  if (request.state === 'open')
    return `${before.id} approved; ${request.quorum - request.approvals.length} more approvals needed.`
  const failed =
    receipt !== undefined && receipt.status === 'error' ? ` The command failed: ${receipt.message}` : ''
  return `${before.id} is ${request.state}; ${before.asker} will be notified.${failed}`
}

function untilText(at: string, now: number): string {
  const left = Date.parse(at) - now
  return left <= 0 ? 'expired' : `expires in ${formatDuration(left)}`
}
