import type { Whereabouts } from '../runtimes/runtime.ts'
import type { Pane, PasteManner } from './program.ts'

/**
 * Looks messages up by their ids: in the record, and what is not there in the pane. What has left the pane by then is in
 * the record when that is read again; what is in the record is not entered again.
 */
export async function locateIn(
  ids: readonly string[],
  pane: Pick<Pane, 'taken'>,
  search: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  lookElsewhere: () => Promise<Whereabouts>,
): Promise<Whereabouts[]> {
  const found = new Map(await search(ids))
  pane.taken([...found.keys()])
  const missing = ids.filter((id) => !found.has(id))
  if (missing.length === 0 && ids.length > 0) return whereaboutsOf(ids, found, NOWHERE)
  const elsewhere = await lookElsewhere()
  for (const [id, evidence] of await search(missing)) found.set(id, evidence)
  return whereaboutsOf(ids, found, elsewhere)
}

const NOWHERE: Whereabouts = { at: 'unknown', evidence: 'it was not looked for' }

/** Of each message: where it was found, by its id, or what is known of all the others. */
export function whereaboutsOf(
  ids: readonly string[],
  found: ReadonlyMap<string, string>,
  elsewhere: Whereabouts,
): Whereabouts[] {
  return ids.map((id) => {
    const evidence = found.get(id)
    return evidence === undefined ? elsewhere : { at: 'submitted', evidence }
  })
}

/**
 * Of what no record of an idle program shows: it may still be on its way through the terminal, or stand in the input
 * box. What of ours stands there unsent is entered.
 */
export async function lookInPane(
  pane: Pick<Pane, 'hasReadInput' | 'enterUnsent' | 'screen'>,
  manner: Pick<PasteManner, 'state' | 'inputBox' | 'lagMs'>,
): Promise<Whereabouts> {
  if (!(await pane.hasReadInput()))
    return { at: 'unknown', evidence: 'it has not read all that was written into its terminal' }
  if (await pane.enterUnsent(manner))
    return { at: 'unknown', evidence: 'something of ours stood unsent in its input box, and was entered' }
  if (manner.inputBox(await pane.screen()) !== 'empty')
    return { at: 'unknown', evidence: 'its input box is not empty' }
  return { at: 'absent', evidence: 'it is idle, and neither its record nor its input box holds it' }
}
