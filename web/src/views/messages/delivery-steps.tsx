import { formatTime } from '../../components/format.ts'
import { Chip } from '../../components/state-label.tsx'
import { QueryResult } from '../../components/view-layout.tsx'
import { useServiceQuery } from '../../data/queries.ts'

/** Every step of a delivery with its evidence (C27). */
export function DeliverySteps({ id }: { id: string }) {
  // What a message waits for (a draft in the input box, say) comes and goes without an event.
  const answer = useServiceQuery('message', [id], {
    needsPolling: ({ delivery }) => delivery === 'queued' || delivery === 'written',
  })
  return (
    <QueryResult answer={answer}>
      {({ steps, attempts, waits_for: waitsFor }) => (
        <div>
          <p className="section">Delivery{attempts > 1 ? `, ${attempts} attempts` : ''}</p>
          <ol className="steps">
            {steps.map(({ at, state, evidence }, index) => (
              <li key={index}>
                <span className="label">{formatTime(at)}</span>
                <Chip word={state} />
                <span>{evidence}</span>
              </li>
            ))}
          </ol>
          {waitsFor === undefined ? null : <p className="label">Waiting: {waitsFor}</p>}
        </div>
      )}
    </QueryResult>
  )
}
