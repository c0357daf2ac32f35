import { useMessage } from '../data/service.ts'
import { clock } from './format.ts'
import { Chip } from './state-label.tsx'
import { Shown } from './view-layout.tsx'

/** Every step of a delivery with what proves it (C27). */
export function Ladder({ id }: { id: string }) {
  const answer = useMessage(id)
  return (
    <Shown answer={answer}>
      {({ steps, attempts, waits_for: waitsFor }) => (
        <div>
          <p className="section">Delivery{attempts > 1 ? `, ${attempts} attempts` : ''}</p>
          <ol className="ladder">
            {steps.map(({ at, state, evidence }, index) => (
              <li key={index}>
                <span className="label">{clock(at)}</span>
                <Chip word={state} />
                <span>{evidence}</span>
              </li>
            ))}
          </ol>
          {waitsFor === undefined ? null : <p className="label">It waits: {waitsFor}</p>}
        </div>
      )}
    </Shown>
  )
}
