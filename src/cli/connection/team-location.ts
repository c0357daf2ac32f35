/** Which team is meant: its orc.yaml and the folder of its state, as far as they are known. */
export interface TeamLocation {
  readonly configFile?: string
  readonly stateFolder?: string
}
