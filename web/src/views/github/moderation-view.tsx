import { useState } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { textOf } from '../../components/exact-text.ts'
import { formatTime } from '../../components/format.ts'
import { useAction } from '../../components/notifications.tsx'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, QueryResult, Segments, ViewHeader } from '../../components/view-layout.tsx'
import { useChanges, useServiceQuery } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { linkTo, useRoute } from '../../route.ts'

type Flag = AnswerOf<'moderation'>['flags'][number]

/** Conduct flags. Only moderators learn whether there are any (S3.15). */
export function ModerationView() {
  const { query } = useRoute()
  const isAll = query.get('show') === 'all'
  const answer = useServiceQuery('moderation', [isAll ? 'all' : 'open'])
  useChanges('moderation')
  return (
    <>
      <ViewHeader title="Moderation" note="visible to moderators only">
        <Segments
          chosen={isAll ? 'All' : 'Open'}
          links={{ Open: linkTo('moderation'), All: linkTo('moderation', undefined, { show: 'all' }) }}
        />
      </ViewHeader>
      <QueryResult answer={answer}>
        {(flags) =>
          flags.length === 0 ? (
            <EmptyState title="No flags">
              <p>Possible violations of a repository's code of conduct appear here, and nowhere else.</p>
            </EmptyState>
          ) : (
            <ul className="cards">
              {flags.map((flag) => (
                <li key={flag.id}>
                  <FlagCard flag={flag} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryResult>
    </>
  )
}

function FlagCard({ flag }: { flag: Flag }) {
  const service = useService()
  const [act, isBusy] = useAction()
  const [comment, setComment] = useState('')
  const close = (decision: 'upheld' | 'dismissed') =>
    void act(async () => {
      const text = comment.trim()
      await service.client.closeModeration(flag.id, { decision, ...(text === '' ? {} : { comment: text }) })
      service.refreshQueries('moderation')
      return `Flag ${decision}.`
    })
  return (
    <article className="request" aria-label={`Flag in ${flag.repository}`}>
      <header className="request-head">
        <b>
          {flag.repository}
          {flag.number === undefined ? '' : `#${flag.number}`}
        </b>
        <Chip
          word={flag.closed_at === undefined ? 'open' : 'closed'}
          tone={flag.closed_at === undefined ? 'asks' : 'off'}
        />
        <span className="label">{formatTime(flag.at)}</span>
      </header>
      <dl className="pairs">
        {Object.entries(flag.flag).map(([name, value]) => (
          <div key={name} className="pair">
            <dt>{name.replaceAll('_', ' ')}</dt>
            <dd>{textOf(value)}</dd>
          </div>
        ))}
      </dl>
      {flag.closed_at === undefined ? (
        <div className="request-form">
          <label className="field">
            <span>Comment (optional)</span>
            <textarea rows={2} value={comment} onChange={(event) => setComment(event.target.value)} />
          </label>
          <div className="verdicts">
            <button
              type="button"
              className="button"
              data-kind="main"
              disabled={isBusy}
              onClick={() => close('upheld')}
            >
              Uphold
            </button>
            <button type="button" className="button" disabled={isBusy} onClick={() => close('dismissed')}>
              Dismiss
            </button>
          </div>
        </div>
      ) : (
        <p className="label">
          closed by {flag.closed_by ?? ''} {formatTime(flag.closed_at)}
          {flag.comment === undefined ? '' : `: ${flag.comment}`}
        </p>
      )}
    </article>
  )
}
