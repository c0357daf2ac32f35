import { useState } from 'react'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { textOf } from '../../components/exact-text.ts'
import { clock } from '../../components/format.ts'
import { useAct } from '../../components/notifications.tsx'
import { Chip } from '../../components/state-label.tsx'
import { Empty, Head, Shown } from '../../components/view-layout.tsx'
import { useAsk, useChanges, useRoom } from '../../data/service.ts'
import { refine, to, usePlace } from '../../route.ts'

type Flag = AnswerOf<'moderation'>['flags'][number]

const MOST = 100

/** Flags about conduct: for moderators, and nobody else learns even whether there are any (S3.15). */
export function ModerationView() {
  const { query } = usePlace()
  const isAll = query.get('show') === 'all'
  const answer = useAsk(
    `moderation:${isAll}`,
    async (client) => (await client.moderation({ state: isAll ? 'all' : 'open', limit: MOST })).flags,
    [useChanges('moderation'), 'moderation'],
  )
  return (
    <>
      <Head title="Moderation" note="only moderators see this">
        <div className="segments">
          <button type="button" aria-pressed={!isAll} onClick={() => refine(to('moderation'))}>
            Open
          </button>
          <button
            type="button"
            aria-pressed={isAll}
            onClick={() => refine(to('moderation', undefined, { show: 'all' }))}
          >
            All
          </button>
        </div>
      </Head>
      <Shown answer={answer}>
        {(flags) =>
          flags.length === 0 ? (
            <Empty title="No flags">
              <p>
                What agents think breaks the code of conduct of a repository is shown here, and nowhere else.
              </p>
            </Empty>
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
      </Shown>
    </>
  )
}

function FlagCard({ flag }: { flag: Flag }) {
  const room = useRoom()
  const [act, isBusy] = useAct()
  const [comment, setComment] = useState('')
  const close = (decision: 'upheld' | 'dismissed') =>
    void act(async () => {
      const said = comment.trim()
      await room.client.closeModeration(flag.id, { decision, ...(said === '' ? {} : { comment: said }) })
      room.touch('moderation')
      return `The flag is ${decision}.`
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
        <span className="label">{clock(flag.at)}</span>
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
            <span>What you did about it (optional)</span>
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
          closed by {flag.closed_by ?? ''} {clock(flag.closed_at)}
          {flag.comment === undefined ? '' : `: ${flag.comment}`}
        </p>
      )}
    </article>
  )
}
