import type { MessageLocation } from '../runtimes/runtime.ts'
import type { Pane, PasteOptions } from './program.ts'

/**
 * Locates messages by id: in the record, then in the pane. A message that has left the pane by then is found
 * when the record is read again; a recorded message is not submitted again.
 */
export async function locateIn(
  ids: readonly string[],
  pane: Pick<Pane, 'markAccepted'>,
  search: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  lookElsewhere: () => Promise<MessageLocation>,
): Promise<MessageLocation[]> {
  const found = new Map(await search(ids))
  pane.markAccepted([...found.keys()])
  const missing = ids.filter((id) => !found.has(id))
  if (missing.length === 0 && ids.length > 0) return locationsOf(ids, found, NOWHERE)
  const elsewhere = await lookElsewhere()
  for (const [id, evidence] of await search(missing)) found.set(id, evidence)
  return locationsOf(ids, found, elsewhere)
}

const NOWHERE: MessageLocation = { at: 'unknown', evidence: 'it was not searched for' }

/** Each message's location: found by id, or the common location of the others. */
export function locationsOf(
  ids: readonly string[],
  found: ReadonlyMap<string, string>,
  elsewhere: MessageLocation,
): MessageLocation[] {
  return ids.map((id) => {
    const evidence = found.get(id)
    return evidence === undefined ? elsewhere : { at: 'submitted', evidence }
  })
}

/**
 * For messages not in the record of an idle program: they may be on their way through the terminal, or in the
 * input box. Submits our pending text.
 */
export async function lookInPane(
  pane: Pick<Pane, 'hasReadInput' | 'submitPending' | 'screen'>,
  options: Pick<PasteOptions, 'state' | 'inputBox' | 'lagMs'>,
): Promise<MessageLocation> {
  if (!(await pane.hasReadInput()))
    return { at: 'unknown', evidence: 'it has not read all of its terminal input yet' }
  if (await pane.submitPending(options))
    return { at: 'unknown', evidence: 'its input box held our pending text, which was submitted' }
  if (options.inputBox(await pane.screen()) !== 'empty')
    return { at: 'unknown', evidence: 'its input box is not empty' }
  return { at: 'absent', evidence: 'it is idle, and neither its record nor its input box contains it' }
}
