/** What a plan.yaml means, once it is read: a graph of agents that hand files to each other. */

/** What becomes of a dependent when the agent it depends on failed or was skipped (C22). */
export const EDGE_POLICIES = ['fail', 'skip', 'proceed'] as const
export type EdgePolicy = (typeof EDGE_POLICIES)[number]

/** What follows once an agent's retries are used up, or trying again would not help (S4.12). */
export const RECOVERIES = ['retry', 'fix', 'skip', 'escalate'] as const
export type Recovery = (typeof RECOVERIES)[number]

export const WORKSPACE_TEMPLATES = [
  'research',
  'code',
  'analysis',
  'writer',
  'review',
  'integration',
  'generic',
] as const
export type WorkspaceTemplate = (typeof WORKSPACE_TEMPLATES)[number]

/** The folder beside the workspaces in which agents leave messages. */
export const MESSAGES = 'messages'

/** What one agent may say to another there. */
export const MESSAGE_TYPES = ['data_ready', 'question', 'answer', 'update'] as const

/** What does an agent's work. `files`: someone outside, known by status.json and nothing else. */
export type Runner =
  | { readonly kind: 'command'; readonly command: string }
  /** A member of the team in orc.yaml. */
  | { readonly kind: 'agent'; readonly agent: string }
  | {
      readonly kind: 'program'
      readonly program: string
      readonly runtime: 'tmux' | 'acp'
      readonly with: Readonly<Record<string, unknown>>
    }
  /** A name from `models` in orc.yaml. */
  | { readonly kind: 'model'; readonly model: string; readonly with: Readonly<Record<string, unknown>> }
  | { readonly kind: 'files' }

/** The sections of instructions.md (S4.5). */
export interface PlanInstructions {
  readonly objective: string
  readonly context: string
  readonly inputsProvided: readonly string[]
  readonly requirements: readonly string[]
  readonly successCriteria: readonly string[]
  readonly constraints: readonly string[]
  readonly outputExpectations: readonly string[]
}

export interface InputFile {
  /** As written; relative to the plan. */
  readonly path: string
  /** Where it goes, from the workspace: `inbox/…`. */
  readonly to: string
  readonly description: string
}

export interface PlanCheck {
  readonly name: string
  readonly command: string
  readonly timeoutMs: number
}

export interface Dependency {
  readonly agent: string
  /** Globs from the other's workspace, `outbox/…`. None: it is only waited for. */
  readonly outputs: readonly string[]
  /** A folder in this one's workspace: `inbox/…`. */
  readonly copyTo: string
  readonly onFailure: EdgePolicy
}

export interface PlanAgent {
  readonly name: string
  readonly runner: Runner
  readonly template: WorkspaceTemplate
  readonly instructions: PlanInstructions
  readonly inputs: readonly InputFile[]
  /** Deliverables it is held to, as globs `outbox/…`. None: any one besides summary.md (S4.7). */
  readonly outputs: readonly string[]
  readonly checks: readonly PlanCheck[]
  /** A model or an agent of orc.yaml. `default`: as that says. */
  readonly judge: 'default' | 'off' | { readonly name: string }
  readonly retries: number
  /** Of one attempt. */
  readonly timeoutMs: number
  /** Without a sign of life. Null: not watched for. */
  readonly stallMs: number | null
  readonly worktree: boolean
  readonly onError: Recovery
  /** One of the plan's fixers, or a member of the team; null: a person. */
  readonly fixer: string | null
  /** How often its inputs may be fixed before a person is asked. */
  readonly maxFixes: number
  readonly dependsOn: readonly Dependency[]
}

/** Changes the inputs of an agent that failed, so that it can be tried again. */
export interface Fixer {
  readonly name: string
  readonly runner: Runner
  readonly instructions: PlanInstructions
  readonly timeoutMs: number
}

export interface Plan {
  readonly name: string
  readonly goal: string
  /** How many agents live at once. */
  readonly concurrency: number
  /** Of the whole run. Null: as long as it takes. */
  readonly timeoutMs: number | null
  /** How long a person has to decide on an agent that failed. Null: as long as it takes. */
  readonly askMs: number | null
  /** Whether its agents have a folder for messages to each other (S4.16). */
  readonly messages: boolean
  /** In the order of the file. */
  readonly agents: readonly PlanAgent[]
  readonly fixers: readonly Fixer[]
}
