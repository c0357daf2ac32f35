import { basename } from 'node:path'
import { type FoundWorkspace, planFromManifests, planText, readPlan } from '../../../runs/plan/read-plan.ts'
import {
  isExpectedAnyway,
  parseInstructions,
  type ReadInstructions,
  readInboxTexts,
  type WorkspaceResult,
} from '../../../workspaces/workspaces.ts'
import type { Problem } from '../../../yaml/problem.ts'
import { findWorkspaces, refused } from '../find-workspaces.ts'

/** Derives a plan from the workspaces in a folder (S4.13): dependencies, files handed over, and instructions. */
export async function planFrom(folder: string): Promise<{ plan: string; problems: readonly Problem[] }> {
  const { path, agents } = findWorkspaces(folder)
  const found: FoundWorkspace[] = []
  for (const { name, workspace } of agents) {
    const read = await readWorkspace(name, workspace)
    if (!read.ok) throw refused(read.error, 'An inbox may contain only regular files.')
    found.push(read.value)
  }
  const planned = planFromManifests(found)
  if (!planned.ok) {
    const problems = planned.error.map(({ path: location, message }) => ({
      ...{ code: 'invalid' as const, path: location, message: `${location}: ${message}` },
    }))
    throw refused(problems, planned.error[0]!.hint)
  }
  const plan = planText({ name: basename(path), ...planned.value })
  const read = readPlan(plan, {})
  return { plan, problems: read.ok ? [] : read.error }
}

async function readWorkspace(name: string, workspace: string): Promise<WorkspaceResult<FoundWorkspace>> {
  const read = await readInboxTexts(name, workspace)
  if (!read.ok) return read
  const parsed = parseInstructions(read.value.instructions ?? '')
  const instructions = parsed.ok ? asWritten(parsed.value) : undefined
  const definition = instructions === undefined ? {} : { definition: { instructions } }
  return { ok: true, value: { name, manifest: read.value.dependencies, ...definition } }
}

/** Leaves out the lines that every run writes again: the inputs, and the outputs expected of everyone. */
function asWritten({
  task,
  instructions,
}: ReadInstructions): NonNullable<FoundWorkspace['definition']>['instructions'] {
  const { objective, context, requirements, successCriteria, constraints } = instructions
  const expected = instructions.outputExpectations.filter((line) => !isExpectedAnyway(line))
  const lists = {
    requirements,
    success_criteria: successCriteria,
    constraints,
    output_expectations: expected,
  }
  const given = Object.entries(lists).filter(([, items]) => items.length > 0)
  if (objective === '' && context === '' && given.length === 0) return undefined
  return {
    objective: objective || task || 'Not specified',
    ...(context === '' ? {} : { context }),
    ...Object.fromEntries(given.map(([key, items]) => [key, [...items]])),
  }
}
